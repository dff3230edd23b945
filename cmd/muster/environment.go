package main

import "strings"

// environment maps the names of the process's environment variables to their values.
type environment map[string]string

func newEnvironment(environ []string) environment {
	env := make(environment, len(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// hasKey reports whether the variables of AWS clients contain an access key.
func (env environment) hasKey() bool {
	return env["AWS_ACCESS_KEY_ID"] != "" && env["AWS_SECRET_ACCESS_KEY"] != ""
}
