//go:build quick

package main

import "github.com/musterhq/muster/internal/settings"

// onlyQuick says what this build is.
const onlyQuick = " This is a quick build, which has only what the demo needs: make build compiles all commands into bin/muster."

// commandLine has the commands that the demo runs. A quick build, which make run compiles, has no others.
type commandLine struct {
	Config string `name:"config" placeholder:"FILE" help:"Settings file, JSON. MUSTER_* variables override it, and flags override both."`

	Demo        demoCommand        `cmd:"" help:"Start the service, play a first game session through it, and keep running."`
	Serve       serveCommand       `cmd:"" help:"Run the service."`
	Agent       agentCommand       `cmd:"" help:"Run the host agent, which starts and watches game servers."`
	Hosts       hostsCommand       `cmd:"" help:"Hosts with an agent: join, list, drain and revoke them."`
	Logs        logsCommand        `cmd:"" help:"Print the output of a server process on a host with muster agent, and follow it."`
	ArenaServer arenaServerCommand `cmd:"" name:"arena-server" hidden:"" passthrough:"" help:"The demo's game server."`
	ArenaClient arenaClientCommand `cmd:"" name:"arena-client" hidden:"" passthrough:"" help:"The demo's player."`
	Version     versionCommand     `cmd:"" help:"Show the version."`
}

// setDefaults sets the defaults of the command that takes the settings of the service.
func (c *commandLine) setDefaults(s settings.Settings) { c.Serve.Settings = s }
