package people

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Own is the provider of the cell's own people, who sign in with passkeys.
const Own = "muster"

// SignInID identifies a sign-in session. Other records contain its text form. It is not secret: a browser proves its session by a separate
// secret.
type SignInID = domain.ID[signInKind]

// ID identifies one of the cell's own people. Records contain its text form, and its 16 bytes are the user handle of the person's passkeys.
type ID = domain.ID[personKind]

type (
	signInKind struct{}
	personKind struct{}
)

// Prefix implements domain.Kind.
func (signInKind) Prefix() string { return "signin-" }

// Prefix implements domain.Kind.
func (personKind) Prefix() string { return "person-" }

// Kind is how a person signed in. The numbers are in the journal.
type Kind uint8

// The kinds.
const (
	Browser Kind = iota + 1 // a browser, which may lend its session to programs on the same machine
	Program                 // a program that has a sign-in session of its own
)

func (k Kind) String() string {
	switch k {
	case Browser:
		return "browser"
	case Program:
		return "program"
	}
	return "unknown"
}

// SignIn is the session of a person who has signed in.
type SignIn struct {
	ID       string
	Kind     Kind
	Provider string // the provider's name in the settings; Own for one of the cell's own people
	Subject  string // of the person at the provider; the id of one of the cell's own people
	Name     string // for people to read
	Groups   []string
	Roles    access.RoleSet // given by the groups
	Started  domain.Time
	Expires  domain.Time
	Checked  domain.Time // when the provider last confirmed the person and the groups
	CheckBy  domain.Time // the session ends then without another confirmation
	Refresh  []byte      // encrypted, for the next check; empty: there is none, and the session ends at CheckBy
	Used     domain.Time // last recorded use
	Address  string      // client address at the last recorded use
	Agent    string      // client program at sign-in
	Sid      string      // id of the session at the provider, with which the provider can end it; empty: none given

	Changed uint64 // journal number of the last change; 0: before this run
}

// Holder names the person in credentials and records: PROVIDER/SUBJECT.
func (x *SignIn) Holder() string { return x.Provider + "/" + x.Subject }

// Level returns the level of the snapshot part.
func (*SignIn) Level() uint { return level }

// Fields of a SignIn.
func (x *SignIn) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	wire.Int(c, 2, &x.Kind)
	c.Shared(3, &x.Provider)
	c.String(4, &x.Subject)
	c.String(5, &x.Name)
	c.Strings(6, &x.Groups)
	wire.Int(c, 7, &x.Roles)
	wire.Int(c, 8, &x.Started)
	wire.Int(c, 9, &x.Expires)
	wire.Int(c, 10, &x.Checked)
	wire.Int(c, 11, &x.CheckBy)
	c.Bytes(12, &x.Refresh)
	wire.Int(c, 13, &x.Used)
	c.Shared(14, &x.Address)
	c.Shared(15, &x.Agent)
	c.String(16, &x.Sid)
}

// ends returns when the session ends unless something happens first.
func (x *SignIn) ends() domain.Time { return min(x.Expires, x.CheckBy) }

func placeOfSignIn(x *SignIn) catalog.Place { return catalog.Place{Created: x.Started, ID: x.ID} }

// check refuses a session with values out of bounds, and truncates texts that are only informative.
func (x *SignIn) check() error {
	if _, err := domain.ParseID[SignInID](x.ID); err != nil {
		return domain.Refuse(domain.Invalid, "sign-in session %.100q: %v", x.ID, err)
	}
	holder := len(x.Provider) + 1 + len(x.Subject)
	switch {
	case x.Kind != Browser && x.Kind != Program:
		return domain.Refuse(domain.Invalid, "kind %d of sign-in session %s is unknown", x.Kind, x.ID)
	case x.Provider == "" || len(x.Provider) > ProviderMax || strings.Contains(x.Provider, "/"):
		return domain.Refuse(domain.Invalid, "provider %.100q: want 1 to %d bytes without /", x.Provider, ProviderMax)
	case x.Subject == "" || holder > access.HolderMax || !oneLine(x.Subject):
		return domain.Refuse(domain.Invalid, "subject %.300q at provider %s: want one line, and at most %d bytes with the provider and a slash", x.Subject, x.Provider, access.HolderMax)
	case len(x.Refresh) > RefreshMax:
		return domain.Refuse(domain.Invalid, "refresh token of %d bytes: want at most %d", len(x.Refresh), RefreshMax)
	case len(x.Sid) > SidMax:
		return domain.Refuse(domain.Invalid, "session at provider %s: %d bytes, want at most %d", x.Provider, len(x.Sid), SidMax)
	case x.Roles == 0:
		return domain.Refuse(domain.Conflict, "no group of %s gives a role", x.Holder())
	case !x.Roles.Known():
		return domain.Refuse(domain.Invalid, "roles %#x of sign-in session %s: want known ones", uint8(x.Roles), x.ID)
	}
	x.Name, x.Address, x.Agent = Short(x.Name, NameMax), Short(x.Address, textMax), Short(x.Agent, textMax)
	return checkGroups(x.Groups)
}

// Person is one of the cell's own people. A slice of a record is never changed in place.
type Person struct {
	ID        string
	Name      string // unique
	Groups    []string
	Created   domain.Time
	CreatedBy string // principal
	Enrolment Enrolment
	Passkeys  []Passkey

	Changed uint64
}

// Level returns the level of the snapshot part.
func (*Person) Level() uint { return level }

// Fields of a Person.
func (x *Person) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.Name)
	c.Strings(3, &x.Groups)
	wire.Int(c, 4, &x.Created)
	c.Shared(5, &x.CreatedBy)
	wire.Sub(c, 6, &x.Enrolment, x.Enrolment != Enrolment{}, (*Enrolment).fields)
	wire.Many(c, 7, &x.Passkeys, (*Passkey).fields)
}

func placeOfPerson(x *Person) catalog.Place { return catalog.Place{Created: x.Created, ID: x.ID} }

// Enrolment is a link with which a person registers one passkey. The state contains only the hash of its secret.
type Enrolment struct {
	Hash    string // empty: there is no link
	Issued  domain.Time
	Expires domain.Time
	By      string // principal
}

func (x *Enrolment) fields(c *wire.Codec) {
	c.String(1, &x.Hash)
	wire.Int(c, 2, &x.Issued)
	wire.Int(c, 3, &x.Expires)
	c.Shared(4, &x.By)
}

// Passkey is a WebAuthn credential.
type Passkey struct {
	ID      []byte // of the credential
	Key     []byte // public key in COSE form
	Model   []byte // AAGUID of the authenticator, 16 bytes; empty: unknown
	Count   uint32 // signature counter of the authenticator; 0: it does not count
	Flags   uint8  // flags of the authenticator data at the last use
	Name    string // a label for its owner
	Created domain.Time
	Used    domain.Time // 0: never

	// Challenge is when the last signed challenge was issued. The next one must be later, so that no answer works twice.
	Challenge domain.Time
}

func (x *Passkey) fields(c *wire.Codec) {
	c.Bytes(1, &x.ID)
	c.Bytes(2, &x.Key)
	c.Bytes(3, &x.Model)
	wire.Int(c, 4, &x.Count)
	wire.Int(c, 5, &x.Flags)
	c.String(6, &x.Name)
	wire.Int(c, 7, &x.Created)
	wire.Int(c, 8, &x.Used)
	wire.Int(c, 9, &x.Challenge)
}

// Use is the latest use of a session since the last recorded one.
type Use struct {
	ID      string
	At      domain.Time
	Address string
}

// Fields of a Use.
func (x *Use) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	wire.Int(c, 2, &x.At)
	c.Shared(3, &x.Address)
}

// Cause is why a session ended. The numbers are in the journal.
type Cause uint8

// The causes.
const (
	Expired       Cause = iota + 1
	NotConfirmed        // the person was not confirmed in time
	SignedOut           // by the person
	EndedByAdmin        // by an operator
	NoLongerKnown       // the provider reports that the person may no longer sign in, or the person was removed
	NoRole              // none of the person's groups gives a role any more
	Replaced            // the person has started too many newer ones
	CodeTwice           // a code of the session was used twice, so it was stolen
	LoggedOut           // the person has signed out at the provider, or was signed out there
)

var causes = [...]string{Expired: "expired", NotConfirmed: "not confirmed in time", SignedOut: "signed out", EndedByAdmin: "ended by an operator",
	NoLongerKnown: "the person is no longer known", NoRole: "no group gives a role any more", Replaced: "replaced by newer sessions of the person", CodeTwice: "a code of it was used twice", LoggedOut: "signed out at the provider"}

// SidMax bounds the id of a session at a provider, in bytes.
const SidMax = 255

func (c Cause) String() string {
	if c == 0 || int(c) >= len(causes) {
		return "unknown"
	}
	return causes[c]
}

// CheckName refuses an invalid name of a person.
func CheckName(name string) error {
	if name == "" || len(name) > NameMax || !oneLine(name) || strings.TrimSpace(name) != name {
		return domain.Refuse(domain.Invalid, "name %.200q: want 1 to %d bytes of UTF-8 without control characters, and no spaces around them", name, NameMax)
	}
	return nil
}

// checkGroups refuses too many groups, and groups that are not one line of text. It does not drop surplus groups, because a policy may deny
// what a group's members may do.
func checkGroups(groups []string) error {
	size := 0
	for _, g := range groups {
		if size += len(g); g == "" || len(g) > GroupMax || !oneLine(g) {
			return domain.Refuse(domain.Invalid, "group %.300q: want one line of 1 to %d bytes", g, GroupMax)
		}
	}
	if len(groups) > GroupsMax || size > groupBytesMax {
		return domain.Refuse(domain.LimitExceeded, "%d groups with %d bytes: want at most %d groups with %d bytes; configure the provider to send only the groups that matter here", len(groups), size, GroupsMax, groupBytesMax)
	}
	return nil
}

func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 })
}

// Short turns a text from outside into one line of at most `most` bytes.
func Short(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !oneLine(string(r)) {
			return -1
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// sortedGroups returns a sorted copy without duplicates, so that equal memberships are equal records.
func sortedGroups(groups []string) []string {
	if len(groups) == 0 {
		return nil
	}
	all := slices.Clone(groups)
	slices.Sort(all)
	return slices.Compact(all)
}
