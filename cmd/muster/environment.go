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
