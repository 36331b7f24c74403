"""Who may do what: `access_control` keeps the decider of `security/` fed and remembers decisions, `audit` writes them down."""
