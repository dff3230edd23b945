//go:build !quick

package main

import "github.com/musterhq/muster/internal/settings"

// onlyQuick is empty, except in a quick build.
const onlyQuick = ""

// commandLine has the commands of muster and their flags.
type commandLine struct {
	basics
	ShowConfig  configCommand      `cmd:"" name:"config" help:"Show the settings in force and where each comes from, or check a settings file."`
	Reload      reloadCommand      `cmd:"" help:"Reload the settings of the running service and the files that they name, and show what changed and what needs a restart."`
	Doctor      doctorCommand      `cmd:"" help:"Examine this machine, the settings and the service, and show each problem with its fix."`
	Support     supportCommand     `cmd:"" name:"support-bundle" help:"Write a file with diagnostic data of the service, without secrets: log, settings, metrics, profiles, the doctor's findings."`
	Health      healthCommand      `cmd:"" help:"Check whether the service on this machine works, for containers and scripts: exit status 0 if it does."`
	Explain     explainCommand     `cmd:"" help:"Explain the state of a player, a party or a game, why a placement or a matchmaking ticket waits or failed, and how and when a game session or a server process ended."`
	Events      eventsCommand      `cmd:"" help:"Show what happened to a player, a game session, a fleet or another object, the latest first, with who changed it."`
	Top         topCommand         `cmd:"" help:"Show in the terminal what needs attention and what runs, with search and drill-down."`
	Logs        logsCommand        `cmd:"" help:"Print the output of a server process on a host with muster agent, and follow it."`
	Keys        keysCommand        `cmd:"" help:"Access keys: create, list, revoke. Works while the service runs."`
	Policies    policiesCommand    `cmd:"" help:"Policies: what access keys, roles and groups may do to which resources, and from where."`
	Access      accessCommand      `cmd:"" help:"Explain who may do what, and why."`
	Console     consoleCommand     `cmd:"" help:"Print a one-time link that signs a browser in to the console."`
	Secret      secretCommand      `cmd:"" help:"The secret of the installation, from which keys and tokens are derived: rotate it while the service runs, list its generations, retire one."`
	SecretKey   secretKeyCommand   `cmd:"" name:"secret-key" help:"The key that encrypts the secrets of a data directory: create, change, remove."`
	Cluster     clusterCommand     `cmd:"" help:"The nodes of a cluster: add, show and remove nodes, change the leader."`
	Build       buildCommand       `cmd:"" help:"Builds: upload the files of a game server, list builds."`
	Backup      backupCommand      `cmd:"" help:"Back up everything while the service runs. Works at any node of a cluster."`
	Restore     restoreCommand     `cmd:"" help:"Restore a backup into a new data directory, or check a backup."`
	Export      exportCommand      `cmd:"" help:"Export ended records, such as game sessions and tickets, as JSON lines for analysts: each record once, over any number of runs."`
	Archive     archiveCommand     `cmd:"" help:"The archive of ended records: find and repair damage on disk."`
	AWSProfile  awsProfileCommand  `cmd:"" name:"aws-profile" help:"Write a profile for the AWS CLI and SDKs, with this service as its endpoint."`
	Login       loginCommand       `cmd:"" help:"Sign in as a person, with a browser. The AWS CLI and the SDKs use the same sign-in."`
	Logout      logoutCommand      `cmd:"" help:"Sign out, and end all tokens and temporary credentials of the sign-in."`
	Credentials credentialsCommand `cmd:"" help:"Print temporary credentials for a sign-in or a client certificate, for credential_process in a profile."`
	WebhookKey  webhookKeyCommand  `cmd:"" name:"webhook-key" help:"Show the key that signs notifications to a webhook."`
	CA          caCommand          `cmd:"" name:"ca" help:"Show the certificate authority of --dev and how to trust it."`
	Bench       benchCommand       `cmd:"" help:"Benchmark Muster on this machine, and write a table."`
	BenchBare   benchBareCommand   `cmd:"" name:"bench-bare" hidden:"" help:"Run the service without a core, as the baseline for bench."`
	BenchAttack benchAttackCommand `cmd:"" name:"bench-attack" hidden:"" help:"Attack a service, for the scenario siege of bench."`
	Simulate    simulateCommand    `cmd:"" help:"Try a matchmaking rule set on a population: waiting times and quality of matches."`
	Lint        lintCommand        `cmd:"" help:"Find mistakes in matchmaking rule sets, including those that the service ignores."`
	Drain       drainCommand       `cmd:"" help:"Keep new game sessions off a compute, and wait until it is empty."`
	Rollout     rolloutCommand     `cmd:"" help:"Move an alias's new game sessions to another fleet in steps, or roll back."`
	Audit       auditCommand       `cmd:"" help:"The audit log: who changed what, from where and why."`
	Hosts       hostsCommand       `cmd:"" help:"Hosts with an agent: join, list, drain and revoke them."`
	People      peopleCommand      `cmd:"" help:"People who sign in: the service's own people with their passkeys, and everyone's sign-in sessions."`
	Computes    computesCommand    `cmd:"" help:"Replace the auth token of a compute."`
	arenaCommands
	Completion completionCommand `cmd:"" help:"Print the completion script for a shell."`
	Man        manCommand        `cmd:"" help:"Write the manual pages into a directory."`
	Version    versionCommand    `cmd:"" help:"Show the version."`
}

// setDefaults sets the defaults of the commands that take the settings of the service.
func (c *commandLine) setDefaults(s settings.Settings) {
	c.Serve.Settings, c.ShowConfig.Show.Settings, c.Doctor.Settings, c.Support.Settings, c.BenchBare.Settings = s, s, s, s, s
}
