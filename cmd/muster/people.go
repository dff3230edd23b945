package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/plural"
)

type peopleCommand struct {
	List          peopleList          `cmd:"" default:"withargs" help:"List the service's own people, with their passkeys."`
	Sessions      peopleSessions      `cmd:"" help:"List the sign-in sessions of all people, including those from an identity provider."`
	Add           peopleAdd           `cmd:"" help:"Add a person, and print a link with which the person registers a passkey. It is shown once, and works once."`
	Enrol         peopleEnrol         `cmd:"" help:"Print a new link, for a further device or to replace a lost link. An earlier link becomes invalid."`
	Groups        peopleGroups        `cmd:"" help:"Put a person into other groups. The roles of the person's sessions follow at once."`
	Remove        peopleRemove        `cmd:"" help:"Remove a person, with all passkeys and sessions."`
	RemovePasskey peopleRemovePasskey `cmd:"" name:"remove-passkey" help:"Remove a passkey, such as that of a lost device. The person's sessions end."`
	EndSession    peopleEndSession    `cmd:"" name:"end-session" help:"End a sign-in session, or all of a person."`
}

// peopleRead has the flags of commands that list people. They need an admin key, because names and addresses are personal data.
type peopleRead struct {
	serviceFlags
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *peopleRead) read(ctx context.Context, env environment) (list operator.PeopleList, err error) {
	service, err := c.reach(ctx, env, identity.MayAdminister)
	if err != nil {
		return list, err
	}
	err = service.call(ctx, http.MethodGet, "people", nil, &list)
	return list, err
}

type peopleList struct{ peopleRead }

func (c *peopleList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	list, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, list.People)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tGROUPS\tROLES\tPASSKEYS\tLINK UNTIL\tADDED\tID")
	for _, p := range list.People {
		link := "-"
		if !p.EnrolmentExpires.IsZero() {
			link = p.EnrolmentExpires.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", printable(p.Name), listed(p.Groups), listed(p.Roles), len(p.Passkeys), link, p.Created.Format(time.RFC3339), p.ID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range list.People {
		for _, k := range p.Passkeys {
			used := "never used"
			if !k.Used.IsZero() {
				used = "used " + k.Used.Format(time.RFC3339)
			}
			if _, err := fmt.Fprintf(stdout, "passkey %s of %s: %s, registered %s, %s\n", k.ID, printable(p.Name), cmp.Or(printable(k.Name), "(no name)"), k.Created.Format(time.RFC3339), used); err != nil {
				return err
			}
		}
	}
	return nil
}

func listed(words []string) string {
	return cmp.Or(printable(strings.Join(words, ",")), "-")
}

type peopleSessions struct{ peopleRead }

func (c *peopleSessions) Run(ctx context.Context, stdout io.Writer, env environment) error {
	list, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	if list.More {
		warn([]string{fmt.Sprintf("there are more sign-in sessions than these %d; the console lists all", len(list.SignIns))})
	}
	if c.JSON {
		return printJSON(stdout, list.SignIns)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tPERSON\tROLES\tSTARTED\tUSED\tFROM\tEXPIRES\tID")
	for _, s := range list.SignIns {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(printable(s.Name), "-"), printable(s.Person), listed(s.Roles), s.Started.Format(time.RFC3339), s.Used.Format(time.RFC3339),
			cmp.Or(printable(s.Address), "-"), s.Expires.Format(time.RFC3339), s.ID)
	}
	return table.Flush()
}

type peopleAdd struct {
	adminChange
	Name  string        `arg:"" help:"Unique name of the person."`
	Group []string      `placeholder:"GROUP" help:"Group of the person; may be given several times. Without other settings, the groups admin, backend, client and readonly give the roles of these names."`
	Valid time.Duration `default:"24h" help:"How long the link is valid, at most 168h."`
}

func (c *peopleAdd) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if err := checkValid(c.Valid); err != nil {
		return err
	}
	var made operator.Enrolment
	if err := c.post(ctx, env, "people", operator.NewPerson{Name: c.Name, Groups: c.Group, ValidSeconds: int64(c.Valid / time.Second)}, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, made.Link)
	warn(made.Warnings)
	return err
}

// checkValid refuses durations that the service would round to zero and replace with its default.
func checkValid(d time.Duration) error {
	if d < time.Second || d%time.Second != 0 {
		return fmt.Errorf("--valid %s: want 1s or more, in whole seconds", d)
	}
	return nil
}

// warn prints warnings to standard error, so that scripts can read standard output.
func warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, "muster:", printable(w))
	}
}

type peopleEnrol struct {
	adminChange
	Person string        `arg:"" help:"Name or id of the person."`
	Valid  time.Duration `default:"24h" help:"How long the link is valid, at most 168h."`
}

func (c *peopleEnrol) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if err := checkValid(c.Valid); err != nil {
		return err
	}
	var made operator.Enrolment
	if err := c.post(ctx, env, "people/"+url.PathEscape(c.Person)+"/enrol", operator.NewEnrolment{ValidSeconds: int64(c.Valid / time.Second)}, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, made.Link)
	return err
}

type peopleGroups struct {
	adminChange
	Person string   `arg:"" help:"Name or id of the person."`
	Group  []string `placeholder:"GROUP" help:"Group of the person from now on, in place of those before; may be given several times."`
	None   bool     `help:"Take all groups away. Without a role, the person is signed out."`
}

// Validate requires an explicit choice: a forgotten --group must not sign a person out.
func (c *peopleGroups) Validate() error {
	if c.None == (len(c.Group) > 0) {
		return errors.New("want --group for each group that the person has from now on, or --none to take all groups away")
	}
	return nil
}

func (c *peopleGroups) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.PersonNamed
	if err := c.post(ctx, env, "people/"+url.PathEscape(c.Person)+"/groups", operator.PersonGroups{Groups: c.Group}, &done); err != nil {
		return err
	}
	groups := "no group"
	if len(c.Group) > 0 {
		groups = "the groups " + listed(c.Group)
	}
	_, err := fmt.Fprintf(stdout, "%s is in %s\n", printable(c.Person), groups)
	warn(done.Warnings)
	return err
}

type peopleRemove struct {
	adminChange
	Person string `arg:"" help:"Name or id of the person."`
}

func (c *peopleRemove) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.PersonNamed
	if err := c.post(ctx, env, "people/"+url.PathEscape(c.Person)+"/remove", struct{}{}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s is removed, and signed out\n", printable(c.Person))
	return err
}

type peopleRemovePasskey struct {
	adminChange
	Person  string `arg:"" help:"Name or id of the person."`
	Passkey string `arg:"" help:"Id of the passkey, as muster people list shows it."`
}

func (c *peopleRemovePasskey) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.PersonNamed
	if err := c.post(ctx, env, "people/"+url.PathEscape(c.Person)+"/passkeys/"+url.PathEscape(c.Passkey)+"/remove", struct{}{}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "the passkey of %s is removed, and the person is signed out\n", printable(c.Person))
	return err
}

type peopleEndSession struct {
	adminChange
	Session string `arg:"" optional:"" help:"Id of the session, as muster people sessions shows it."`
	Person  string `placeholder:"PERSON" help:"Instead: all sessions of a person, PROVIDER/SUBJECT, or a name or id of the service's own people."`
}

func (c *peopleEndSession) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.EndedSignIns
	if err := c.post(ctx, env, "people/end-sessions", operator.EndSignIns{Session: c.Session, Person: c.Person}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s ended\n", plural.Of(done.Ended, "session has", "sessions have"))
	return err
}
