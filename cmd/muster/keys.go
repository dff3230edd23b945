package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/secretkey"
)

// dataFlag is part of commands that work on the data directory and need no other setting.
type dataFlag struct {
	Data          string `name:"data" placeholder:"DIR" default:"${data}" help:"Data directory of the service."`
	SecretKeyFile string `name:"secret-key-file" placeholder:"FILE" help:"The key of the service's --secret-key-file, if it has one."`
}

// key returns the key that encrypts the secrets in the data directory.
func (f *dataFlag) key() (*secretkey.Key, error) { return secretkey.Read(f.SecretKeyFile, f.Data) }

// takeOver prepares a command that changes the data directory without its service, and returns the key of its secrets. The process becomes the
// user that the service runs as: the service could not start with files that belong to root.
func (f *dataFlag) takeOver() (*secretkey.Key, error) {
	if err := mustExist(f.Data); err != nil {
		return nil, err
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return key, becomeOwner(f.Data)
}

// secret returns the cell's secret.
func (f *dataFlag) secret() (s identity.CellSecret, err error) {
	key, err := f.key()
	if err != nil {
		return s, err
	}
	return identity.ReadCellSecret(f.Data, key)
}

// client reaches the service that runs on the data directory.
func (f *dataFlag) client() (*localdoor.Client, error) {
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return localdoor.NewClient(f.Data, key, userName())
}

type keysCommand struct {
	Create keysCreate `cmd:"" help:"Create an access key and show it with its secret. A running service accepts it at once."`
	List   keysList   `cmd:"" help:"List all keys, without secrets."`
	Rotate keysRotate `cmd:"" help:"Replace a key in two steps: the first creates a successor, and both keys work; the second, --finish, revokes the old key."`
	Limit  keysLimit  `cmd:"" help:"Change a key's expiry and the networks from which it works, without a new key. In a running service the change takes effect before the command returns."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key permanently and close its connections. A running service refuses it before the command returns."`

	RevokeCredentials keysRevokeCredentials `cmd:"" help:"Revoke temporary credentials before they expire: those of one session, all that were issued to a holder, or all of a client certificate, which then gets no more."`
}

// keysAt selects the service whose keys the command changes.
type keysAt struct {
	dataFlag
	LimitAccessKeys int    `name:"limit-access-keys" hidden:""` // the service's setting, used while no service runs
	Server          string `placeholder:"URL" instead:"data,secret-key-file" help:"Call the service at this URL instead of using --data, with an admin key from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE) or --profile."`
	Profile         string `placeholder:"NAME" with:"server" help:"AWS profile whose access key signs for --server."`
}

// door returns the access to the keys; reason is recorded with changes. With exists, the directory must exist; otherwise door may create it.
func (a *keysAt) door(env environment, exists bool, reason string) (keyDoor, error) {
	if a.Server != "" {
		service, err := serviceAt(a.Server, a.Profile, env, reason)
		if err != nil {
			return nil, err
		}
		return &serverKeys{*service}, nil
	}
	if exists {
		if err := mustExist(a.Data); err != nil {
			return nil, err
		}
	}
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	if exists { // a mistyped name must not make a data directory out of another one
		if empty, err := datadir.IsEmpty(datadir.Options{Dir: a.Data, Key: key}); err == nil && empty { // what uses the directory explains its errors
			return nil, fmt.Errorf("%s: it has no keys: it is not a data directory, or it is new", a.Data)
		}
	}
	return &dataKeys{dir: a.Data, key: key, keysMax: a.LimitAccessKeys, mayYield: true, notes: os.Stderr, reason: reason}, nil
}

type keysCreate struct {
	keysAt
	reasonFlag
	Role identity.Role `required:"" placeholder:"admin|backend|client|readonly" help:"Permissions of the key."`
	Name string        `help:"Name of the key in the list."`
	keyLimits
	Format string `enum:"text,env" default:"text" help:"text for people, env for a shell."`
}

// keyLimits restrict from where and until when a key works.
type keyLimits struct {
	Expires expiry   `placeholder:"TIME" help:"Expiry of the key: a number of days such as 90d, a duration such as 12h, or a time such as 2027-01-31T00:00:00Z."`
	Source  []string `placeholder:"NETWORK" help:"The key works only from this network, such as 192.0.2.0/24, or address. Repeat it, or use commas, for several."`
}

// expiry is the value of a flag for the expiry of a key.
type expiry struct {
	at      time.Time // zero: not given
	forever bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (x *expiry) UnmarshalText(text []byte) error {
	s := string(text)
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		x.at = at
		return nil
	}
	after, err := longDuration(s)
	switch {
	case s == "never":
		x.forever = true
	case err != nil || after <= 0:
		return fmt.Errorf("want a number of days such as 90d, a duration such as 12h, a time such as 2027-01-31T00:00:00Z, or never; got %q", s)
	default:
		x.at = time.Now().Add(after).UTC().Truncate(time.Second)
	}
	return nil
}

// daysMax limits a number of days to a hundred years, which fit into a duration.
const daysMax = 36_525

// longDuration parses a duration, which may be in days.
func longDuration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || n > daysMax {
		return 0, fmt.Errorf("%q: want 1d to %dd", text, daysMax)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// days is the value of a flag for a duration that may be in days.
type days time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (x *days) UnmarshalText(text []byte) error {
	d, err := longDuration(string(text))
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q: want more than 0", text)
	}
	*x = days(d)
	return err
}

func (c *keysCreate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, false, c.Reason)
	if err != nil {
		return err
	}
	key, err := door.create(ctx, keyring.New{Role: c.Role, Name: c.Name, Expires: c.Expires.at, Sources: c.Source})
	if err != nil {
		return err
	}
	return printKey(stdout, &key, c.Format)
}

// printKey prints a new key with its secret.
func printKey(stdout io.Writer, key *keyring.Document, format string) error {
	if format == "env" {
		_, err := fmt.Fprintf(stdout, "export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\n", key.ID, key.Secret)
		return err
	}
	text := fmt.Sprintf("access key id      %s\nsecret access key  %s\nrole               %s\n", key.ID, key.Secret, key.Role)
	if !key.Expires.IsZero() {
		text += "expires            " + key.Expires.UTC().Format(time.RFC3339) + "\n"
	}
	if len(key.Sources) > 0 {
		text += "works from         " + strings.Join(key.Sources, ", ") + "\n"
	}
	_, err := io.WriteString(stdout, text)
	return err
}

type keysList struct {
	keysAt
	Unused days `placeholder:"TIME" help:"Only valid keys that have not been used for this long: 90d, or 12h."`
}

func (c *keysList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, "")
	if err != nil {
		return err
	}
	list, err := door.list(ctx)
	if err != nil {
		return err
	}
	if c.Unused > 0 {
		since := time.Now().Add(-time.Duration(c.Unused))
		list = slices.DeleteFunc(list, func(k keyring.Document) bool { return !k.UnusedSince(since) })
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tROLE\tACCOUNT\tCREATED\tREVOKED\tEXPIRES\tLAST USED\tSOURCES\tNAME\tBY")
	for _, key := range list {
		revoked, by := "-", key.CreatedBy
		switch {
		case key.Expired():
			revoked = "expired"
		case !key.Works():
			revoked, by = key.Revoked.Format(time.RFC3339), cmp.Or(key.RevokedBy, by)
		}
		expires, name := "-", cmp.Or(printable(key.Name), "-")
		if !key.Expires.IsZero() {
			expires = key.Expires.Format(time.RFC3339)
		}
		if key.Successor != "" {
			name += " (replaced by " + key.Successor + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Role, key.Account, key.Created.Format(time.RFC3339), revoked, expires, lastUse(&key),
			cmp.Or(strings.Join(key.Sources, ","), "-"), name, printable(by.String()))
	}
	return table.Flush()
}

// lastUse describes when, from where, and for what a key was last used.
func lastUse(key *keyring.Document) string {
	if key.LastUse == nil {
		return "-"
	}
	return key.LastUse.At.Format(time.RFC3339) + " " + printable(key.LastUse.Operation) + " from " + printable(key.LastUse.Address)
}

type keysRotate struct {
	keysAt
	reasonFlag
	ID      string `arg:"" help:"Id of the key to replace."`
	Finish  bool   `help:"Revoke the old key: all its users have the successor."`
	Overlap days   `placeholder:"TIME" help:"End the old key after this time, such as 7d, without --finish."`
	keyLimits
	Format string `enum:"text,env" default:"text" help:"text for people, env for a shell."`
}

// Validate refuses flags of the first step in the second.
func (c *keysRotate) Validate() error {
	if c.Finish && (c.Overlap != 0 || len(c.Source) > 0 || c.Expires != (expiry{}) || c.Format != "text") {
		return errors.New("--finish ends the old key and cannot be combined with --overlap, --expires, --source or --format")
	}
	return nil
}

func (c *keysRotate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	if c.Finish {
		old, err := door.finish(ctx, c.ID)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s is revoked: the service refuses its requests, and has closed its connections. Its last use: %s\n", c.ID, lastUse(&old))
		return err
	}
	done, err := door.rotate(ctx, keyring.Rotation{ID: c.ID, Expires: c.Expires.at, Forever: c.Expires.forever, Sources: c.Source, Overlap: time.Duration(c.Overlap)})
	if err != nil {
		return err
	}
	if err := printKey(stdout, &done.Successor, c.Format); err != nil || c.Format == "env" {
		return err
	}
	until := "until `muster keys rotate --finish " + c.ID + "`"
	if !done.Key.Expires.IsZero() {
		until = "until " + done.Key.Expires.UTC().Format(time.RFC3339) + ", or " + until
	}
	_, err = fmt.Fprintf(stdout, "\n%s works as well, %s. Its last use: %s\n", c.ID, until, lastUse(&done.Key))
	return err
}

type keysLimit struct {
	keysAt
	reasonFlag
	ID      string   `arg:"" help:"Id of the key."`
	Expires expiry   `placeholder:"TIME" help:"Expiry of the key: a number of days such as 90d, a duration such as 12h, a time such as 2027-01-31T00:00:00Z, or never."`
	Source  []string `placeholder:"NETWORK" help:"The key works only from this network, such as 192.0.2.0/24, or address, instead of the previous ones. Repeat it, or use commas, for several; anywhere removes the limit."`
	Force   bool     `help:"With --server: even if this request's own key, or the last admin key without limits, would stop working. --data needs no --force."`
}

// anywhere is the value of --source that removes the limit by networks.
const anywhere = "anywhere"

// Validate refuses a command that changes nothing.
func (c *keysLimit) Validate() error {
	switch {
	case c.Expires == (expiry{}) && len(c.Source) == 0:
		return errors.New("want --expires, --source, or both")
	case slices.Contains(c.Source, anywhere) && len(c.Source) > 1:
		return errors.New("--source anywhere: want it without other networks")
	}
	return nil
}

func (c *keysLimit) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	x := keyring.Limits{ID: c.ID, Expires: c.Expires.at, Forever: c.Expires.forever, Sources: c.Source, Force: c.Force}
	if slices.Contains(c.Source, anywhere) {
		x.Sources, x.Anywhere = nil, true
	}
	key, err := door.limit(ctx, x)
	if err != nil {
		return err
	}
	until, from := "until it is revoked", "from everywhere"
	if !key.Expires.IsZero() {
		until = "until " + key.Expires.UTC().Format(time.RFC3339)
	}
	if len(key.Sources) > 0 {
		from = "from " + strings.Join(key.Sources, ", ")
	}
	_, err = fmt.Fprintf(stdout, "%s works %s, %s\n", c.ID, until, from)
	return err
}

type keysRevoke struct {
	keysAt
	reasonFlag
	ID    string `arg:"" help:"Id of the key."`
	Force bool   `help:"With --server: revoke even the last admin key. --data needs no --force."`
}

func (c *keysRevoke) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	if _, err := door.revoke(ctx, c.ID, c.Force); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is revoked: the service refuses its requests, and has closed its connections\n", c.ID)
	return err
}

type keysRevokeCredentials struct {
	keysAt
	reasonFlag
	Session     string    `placeholder:"ID" xor:"which" required:"" help:"Access key id of the temporary credentials, ASIA…."`
	Holder      string    `placeholder:"NAME" xor:"which" required:"" help:"Id of the access key that they were issued to, PROVIDER/SUBJECT of a web identity, or AUTHORITY/NAME of a certificate."`
	Certificate string    `placeholder:"FILE" xor:"which" required:"" help:"Client certificate in PEM with which they were obtained, or sha256:FINGERPRINT, or AUTHORITY/SERIAL in hex. It is refused from then on."`
	IssuedUntil time.Time `placeholder:"TIME" with:"holder" help:"With --holder: credentials that were issued later keep working, such as 2026-11-23T12:00:00Z. Default: now."`
}

// knownHolder refuses the id of an access key that does not exist: the service stores no temporary credentials, so it would accept a mistyped id silently.
// A caller who may not list the keys gets no such check.
func (c *keysRevokeCredentials) knownHolder(ctx context.Context, door keyDoor) error {
	if c.Holder == "" || strings.Contains(c.Holder, "/") { // a machine, a backend or a person
		return nil
	}
	all, err := door.list(ctx)
	if err != nil || slices.ContainsFunc(all, func(k keyring.Document) bool { return k.ID == c.Holder }) {
		return nil
	}
	return fmt.Errorf("--holder %q: there is no such access key; want the id of one, which muster keys list shows, PROVIDER/SUBJECT of a web identity or a person, or AUTHORITY/NAME of a certificate", c.Holder)
}

func (c *keysRevokeCredentials) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, true, c.Reason)
	if err != nil {
		return err
	}
	if c.Session != "" && !strings.HasPrefix(c.Session, identity.SessionPrefix) {
		return fmt.Errorf("--session %q: want the access key id of temporary credentials, which begins with %s; for all credentials of an access key use --holder", c.Session, identity.SessionPrefix)
	}
	if err := c.knownHolder(ctx, door); err != nil {
		return err
	}
	x := keyring.Credentials{Session: c.Session, Holder: c.Holder, IssuedUntil: c.IssuedUntil}
	if c.Certificate != "" {
		if x.Certificate, x.Until, err = clientcert.Named(c.Certificate); err != nil {
			return fmt.Errorf("--certificate: %w", err)
		}
	}
	if err := door.revokeCredentials(ctx, x); err != nil {
		return err
	}
	if x.Certificate != "" {
		_, err = fmt.Fprintf(stdout, "the certificate %s is revoked: it gets no more credentials, and the service has closed the connections of those that it got\n", x.Certificate)
		return err
	}
	_, err = fmt.Fprintf(stdout, "the temporary credentials of %s are revoked: the service refuses them, and has closed their connections\n", cmp.Or(c.Session, c.Holder))
	return err
}
