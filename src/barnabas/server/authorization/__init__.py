"""Authorization: `access_control` gives ACLs to the authorizer of `security/` and remembers decisions; `audit` logs them."""
