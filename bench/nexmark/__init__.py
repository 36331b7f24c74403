"""Nexmark: an auction house whose events are three streams, and the queries over them (Tucker, Tufte, Papadimos and Maier, 2002, as the
Apache Beam project has defined its generator since)."""
