package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/manual"
	"github.com/musterhq/muster/internal/plural"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the lines that enable completion.
func (completionCommand) Help() string {
	return `In bash: source <(muster completion bash).
In zsh, after compinit: source <(muster completion zsh).
In fish: muster completion fish | source.
Packages for Debian and Red Hat have the scripts in place.`
}

func (c *completionCommand) Run(stdout io.Writer, parser *kong.Context) error {
	script := map[string]func(*kong.Application) string{"bash": manual.Bash, "zsh": manual.Zsh, "fish": manual.Fish}[c.Shell]
	_, err := io.WriteString(stdout, script(parser.Model))
	return err
}

type manCommand struct {
	Dir string `arg:"" name:"dir" help:"Directory for the pages, such as /usr/local/share/man/man1. It is created if it does not exist."`
}

func (c *manCommand) Run(stdout io.Writer, env environment, parser *kong.Context) error {
	release := manual.Release{Version: versionText()}
	if text := env["SOURCE_DATE_EPOCH"]; text != "" { // https://reproducible-builds.org/specs/source-date-epoch/
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %q; want seconds since 1970", text)
		}
		release.Date = time.Unix(seconds, 0)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	pages := manual.Pages(parser.Model, release, manualSections...)
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(c.Dir, p.Name), []byte(p.Text), 0o644); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(stdout, "%s in %s\n", plural.Of(len(pages), "page", "pages"), c.Dir)
	return err
}

// manualSections are the parts of muster(1) that the parser does not know.
var manualSections = []manual.Section{
	{Title: "SETTINGS", Paragraphs: []string{
		"A setting of the service is a flag of muster serve, a variable, or a line of the settings file, by the same name. These three are the same:",
		"    --limit-fleets 50\n    MUSTER_LIMIT_FLEETS=50\n    {\"limit-fleets\": 50}",
		"Flags win over variables, and variables over the file. muster config shows what is in force, and where each value comes from.",
	}},
	{Title: "ENVIRONMENT", Paragraphs: []string{
		"MUSTER_CONFIG names the settings file. Other variables that begin with MUSTER_ are settings, and an unknown one is an error. Commands that call the service with an access key read AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_PROFILE as the AWS CLI does.",
		"NOTIFY_SOCKET and WATCHDOG_USEC come from systemd, to which muster serve and muster agent then report that they are ready, that they work, and that they stop.",
	}},
	{Title: "EXIT STATUS", Paragraphs: []string{"0 when the command did what it says, and 1 otherwise, with the reason on standard error."}},
	{Title: "EXAMPLES", Paragraphs: []string{
		"A first game session on this machine:", "    muster demo",
		"A service of one's own, and a key for its operator:", "    muster serve --data /var/lib/muster --tls-cert chain.pem --tls-key key.pem --listen :443 --public-url https://muster.example.com\n    muster keys create --data /var/lib/muster --role admin --name ops",
	}},
}
