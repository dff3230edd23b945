//go:build !quick

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/doctor"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/support"
)

// supportCommand takes the same flags as serve, to examine the settings that serve would use.
type supportCommand struct {
	settings.Settings
	reasonFlag
	Out       string        `name:"out" placeholder:"FILE" help:"New .tar.gz file to write; or - for standard output. Default: muster-support-TIME.tar.gz in this directory."`
	Processor time.Duration `name:"processor" default:"5s" placeholder:"TIME" help:"Length of the CPU profile, up to 15s. 0s: none."`
	Server    string        `placeholder:"URL" instead:"data,secret-key-file,listen,public-url" help:"Ask the service at this URL instead of the one that runs on --data, with an admin key from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE) or --profile. The bundle then contains nothing from this machine."`
	Profile   string        `placeholder:"NAME" with:"server" help:"AWS profile whose access key or sign-in is used for --server."`
}

// filesPatience limits the time for finding the service, and then for looking at the files of the data directory, whose disk may not answer.
const filesPatience = 10 * time.Second

// doctorPatience limits the total time of the doctor's checks.
const doctorPatience = time.Minute

// Run writes the bundle. If the service is down, the bundle has only the parts from this machine and the data directory.
func (c *supportCommand) Run(ctx context.Context, env environment, stdout io.Writer) (err error) {
	if c.Processor < 0 || c.Processor > support.CPUMax || c.Processor%time.Second != 0 { // the service counts in seconds
		return fmt.Errorf("--processor %s: want 0s to %s, in whole seconds", c.Processor, support.CPUMax)
	}
	made := time.Now()
	if c.Out == pipe {
		if err := refuseTerminal(stdout); err != nil {
			return err
		}
		return c.write(ctx, env, stdout, "standard output", made, os.Stderr)
	}
	name := c.Out
	if name == "" {
		name = "muster-support-" + made.UTC().Format("20060102-150405") + ".tar.gz"
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out %s: the file exists already; choose another name", name)
	}
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	if err := c.write(ctx, env, file, name, made, text); err != nil {
		return errors.Join(err, file.Close(), os.Remove(name))
	}
	if err := file.Close(); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	_, err = io.WriteString(stdout, text.String())
	return err
}

// write writes the bundle to file and lists its parts on tell, under the given name.
func (c *supportCommand) write(ctx context.Context, env environment, file io.Writer, name string, made time.Time, tell io.Writer) error {
	parts, err := c.gather(ctx, env)
	if err != nil {
		return err
	}
	if err := parts.Write(file, made, versionText()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.WriteString(tell, supportText(name, parts))
	return err
}

// gather collects all parts: those from the service, and those from this machine.
func (c *supportCommand) gather(ctx context.Context, env environment) (*support.Parts, error) {
	parts := &support.Parts{}
	if c.Server != "" {
		at := adminChange{serviceFlags{PublicURL: c.Server, Profile: c.Profile}, c.reasonFlag}
		var theirs support.Parts
		if err := at.post(ctx, env, operator.SupportBundlePath, operator.NewSupportBundle{ProcessorSeconds: int(c.Processor / time.Second)}, &theirs); err != nil {
			return nil, err
		}
		parts.Join(theirs.All)
		return parts, nil
	}
	theirs, err := c.ofService(ctx)
	var hangs error
	if errors.Is(err, localdoor.ErrHangs) {
		hangs = err
	}
	switch {
	case errors.Is(err, localdoor.ErrNoService), errors.Is(err, localdoor.ErrHangs), errors.Is(err, support.ErrNoAnswer):
		parts.Add("service-down.txt", "the service did not answer: there is no log, no profile and no state in this bundle", []byte(err.Error()+"\n"))
	case err != nil:
		return nil, err
	}
	parts.Join(theirs.All)
	secrets := c.Settings.Secrets()
	reading, cancel := context.WithTimeout(ctx, filesPatience)
	defer cancel()
	if err != nil {
		parts.Add("settings.txt", "every setting as muster serve would have it; values that may contain a secret are shown as \"set\"", support.SettingsText(settings.Loaded{Settings: c.Settings}))
		parts.Machine(reading, "machine-of-the-command.json", c.Data)
	}
	parts.Directory(reading, c.Data)
	parts.Add("doctor.json", "what muster doctor finds", support.Scrub(c.examine(ctx, hangs), secrets))
	return parts, ctx.Err()
}

// ofService returns the parts from the service that runs on the data directory.
func (c *supportCommand) ofService(ctx context.Context) (p support.Parts, err error) {
	reading, cancel := context.WithTimeout(ctx, filesPatience)
	defer cancel()
	client, err := support.Await(reading, c.client)
	if err != nil {
		return p, err
	}
	client.Reason = c.Reason
	return client.SupportBundle(ctx, c.Processor)
}

func (c *supportCommand) client() (*localdoor.Client, error) {
	if err := mustExist(c.Data); err != nil {
		return nil, err
	}
	data := dataFlag{Data: c.Data, SecretKeyFile: c.SecretKeyFile}
	client, err := data.client()
	if err != nil {
		if _, missing := os.Stat(c.Data + "/cell.secret"); os.IsNotExist(missing) {
			err = fmt.Errorf("%w: %w", localdoor.ErrNoService, err) // a directory that was never initialized, or has lost its secret
		}
	}
	return client, err
}

// examine runs the doctor's checks except the trial of a server process.
func (c *supportCommand) examine(ctx context.Context, hangs error) []byte {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	endpoint, err := apiEndpoint(c.Listen, c.PublicURL)
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	found := doctor.Examine(ctx, &doctor.Config{Settings: c.Settings, Endpoint: endpoint, Version: versionText(), NoSDK: "a support bundle tries none", Hangs: hangs})
	var text strings.Builder
	if err := printFindings(&text, found); err != nil {
		return []byte(err.Error() + "\n")
	}
	return []byte(text.String())
}

// supportText describes the bundle's parts.
func supportText(name string, parts *support.Parts) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s contains\n", name)
	for _, x := range parts.All {
		fmt.Fprintf(b, "  %-28s %s\n", x.Name, x.About)
	}
	b.WriteString("and does not contain\n")
	for line := range strings.Lines(support.Without + "\n") {
		b.WriteString("  " + line)
	}
	b.WriteString("Log lines and the overview contain names, ids and addresses: review them before you send the file.\n")
	return b.String()
}
