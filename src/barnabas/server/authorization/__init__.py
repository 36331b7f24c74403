"""Authorization: `access_control` gives ACLs to the authorizer of `security/` and remembers decisions; `audit` writes them down."""
