//go:build quick

package main

import "github.com/musterhq/muster/internal/settings"

// onlyQuick says what this build is.
const onlyQuick = " This is a quick build, which has only what the demo needs: make build compiles all commands into bin/muster."

// commandLine has the commands that the demo runs. A quick build, which make run compiles, has no others.
type commandLine struct {
	basics
	Hosts hostsCommand `cmd:"" help:"Hosts with an agent: join, list, drain and revoke them."`
	Logs  logsCommand  `cmd:"" help:"Print the output of a server process on a host with muster agent, and follow it."`
	arenaCommands
	Version versionCommand `cmd:"" help:"Show the version."`
}

// setDefaults sets the defaults of the command that takes the settings of the service.
func (c *commandLine) setDefaults(s settings.Settings) { c.Serve.Settings = s }
