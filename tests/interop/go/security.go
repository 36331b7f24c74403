package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security has the settings of TLS and SASL from the environment. INTEROP_CA, INTEROP_CERTIFICATE and INTEROP_KEY name files;
// INTEROP_MECHANISM, INTEROP_USER and INTEROP_PASSWORD are for SASL. Each variable may be missing.
type security struct {
	tls                       *tls.Config
	mechanism, user, password string
}

var secured security

func securityFromEnvironment() (security, error) {
	found := security{mechanism: os.Getenv("INTEROP_MECHANISM"), user: os.Getenv("INTEROP_USER"), password: os.Getenv("INTEROP_PASSWORD")}
	authority := os.Getenv("INTEROP_CA")
	if authority == "" {
		return found, nil
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		return found, err
	}
	found.tls = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !found.tls.RootCAs.AppendCertsFromPEM(text) {
		return found, fmt.Errorf("no certificate in %s", authority)
	}
	if file := os.Getenv("INTEROP_CERTIFICATE"); file != "" {
		certificate, err := tls.LoadX509KeyPair(file, os.Getenv("INTEROP_KEY"))
		if err != nil {
			return found, err
		}
		found.tls.Certificates = []tls.Certificate{certificate}
	}
	return found, nil
}

func (s security) franz() []kgo.Opt {
	var options []kgo.Opt
	if s.tls != nil {
		options = append(options, kgo.DialTLSConfig(s.tls))
	}
	var mechanism sasl.Mechanism
	switch s.mechanism {
	case "PLAIN":
		mechanism = plain.Auth{User: s.user, Pass: s.password}.AsMechanism()
	case "SCRAM-SHA-256":
		mechanism = scram.Auth{User: s.user, Pass: s.password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		mechanism = scram.Auth{User: s.user, Pass: s.password}.AsSha512Mechanism()
	default:
		return options
	}
	return append(options, kgo.SASL(mechanism))
}

// sarama sets PLAIN only: for SCRAM the library sarama needs other packages.
func (s security) sarama(config *sarama.Config) {
	config.Net.TLS.Enable, config.Net.TLS.Config = s.tls != nil, s.tls
	if s.mechanism != "" {
		config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLMechanism(s.mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = s.user, s.password
	}
}
