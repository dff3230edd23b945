package people

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
)

// Person is a person who has signed in.
type Person struct {
	SignIn            string // id of the sign-in session
	Provider, Subject string
	Name              string // for people to read
	Groups            []string
	Roles             access.RoleSet // that the person may use
	Started, Expires  time.Time
}

// Holder returns the person's name in credentials and records: PROVIDER/SUBJECT.
func (p *Person) Holder() string { return p.Provider + "/" + p.Subject }

// SessionName returns the session name of the person's temporary credentials, in AWS's form for such names: 2 to 64 characters.
func (p *Person) SessionName() string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+=,.@_-", r)) {
			return r
		}
		return '-'
	}, cmp.Or(p.Name, p.Subject))
	if len(name) < 2 {
		name += "--"[:2-len(name)]
	}
	return name[:min(len(name), 64)]
}

// Browser returns the person whose browser sent a request.
func (d *Door) Browser(r *http.Request) (Person, bool) {
	id, ok := d.sessionOf(r)
	if !ok {
		return Person{}, false
	}
	p, ok := d.Session(r.Context(), id)
	if ok {
		d.uses.note(people.Use{ID: id, At: domain.TimeOf(d.engine.Now()), Address: d.config.Proxies.Of(r)})
		proven(r)
	}
	return p, ok
}

// Limits on lookups of sessions that this node does not know.
const (
	looksMax = 8 // at a time; further ones wait
	lookWait = 5 * time.Second
)

// live returns the published form of a continuing session. The id comes from a cookie or token that the cell signed. So an unknown session has either ended, or it began on another node
// and this one has not received it yet: a load balancer may send the browser's next request here.
func (d *Door) live(ctx context.Context, id string) (identity.SignIn, bool) {
	if x, ok := d.config.Keys.SignIn(id); ok {
		return x, true
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	select {
	case d.looks <- struct{}{}:
		defer func() { <-d.looks }()
	case <-ctx.Done():
		return identity.SignIn{}, false
	}
	var x people.SignIn
	var ok bool
	err := d.engine.Read(ctx, func(v *cell.View) error {
		x, ok = v.SignIn(id)
		return nil
	})
	if err != nil || !ok || d.config.Keys.Await(ctx, x.Changed) != nil {
		return identity.SignIn{}, false
	}
	return d.config.Keys.SignIn(id)
}

// Session returns the person of a continuing sign-in session. The caller has the id from something that the cell signed.
func (d *Door) Session(ctx context.Context, id string) (Person, bool) {
	live, ok := d.live(ctx, id)
	if !ok {
		return Person{}, false
	}
	var x people.SignIn
	err := d.engine.ReadHere(ctx, func(v *cell.View) error {
		x, ok = v.SignIn(id)
		return nil
	})
	if err != nil || !ok || !d.engine.Now().Before(min(x.Expires, x.CheckBy).Std()) {
		return Person{}, false
	}
	return Person{SignIn: x.ID, Provider: x.Provider, Subject: x.Subject, Name: x.Name, Groups: live.Groups, Roles: live.Roles, Started: x.Started.Std(), Expires: x.Expires.Std()}, true
}

// SignIn redirects a browser to the sign-in page, which leads back to a path of this service.
func (d *Door) SignIn(w http.ResponseWriter, r *http.Request, back string) {
	http.Redirect(w, r, SignInPath(back), http.StatusSeeOther)
}

// SignInPath returns the path of that page.
func SignInPath(back string) string { return Path + "?back=" + url.QueryEscape(backOf(back)) }

// NotEnded tells a person that SignOut has failed.
const NotEnded = "This browser is signed out, but the service could not end the sign-in: programs that use it, such as the AWS CLI, stay signed in until it expires. An administrator can end it."

// SignOut ends the session of a browser, if it has one, also if the browser does not wait for the answer. The caller has checked OwnPage. After an error, the browser no longer has the
// session, which continues.
func (d *Door) SignOut(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, d.cookie(r, sessionCookie, "", -1))
	p, ok := d.Browser(r)
	if !ok {
		return nil
	}
	err := d.End(audit.With(context.WithoutCancel(r.Context()), d.origin(r, p.Holder(), "SignOut")), p.SignIn, people.SignedOut)
	if err != nil {
		d.log.Error("a sign-out failed: the session stays valid until it expires", "session", p.SignIn, "error", err)
	}
	return err
}

// End ends a session. When it returns, this node refuses all credentials and tokens of the session; other nodes do so within a second. The context has the origin for the audit log.
func (d *Door) End(ctx context.Context, id string, cause people.Cause) error {
	cmd := &people.EndSession{ID: id, Cause: cause}
	if err := d.engine.Do(ctx, cmd); err != nil {
		return err
	}
	if cmd.Number == 0 {
		return nil // it had already ended
	}
	d.log.Info("sign-in session ended", "session", id, "person", cmd.Holder, "cause", cause.String())
	return d.config.Keys.Await(context.WithoutCancel(ctx), cmd.Number)
}

// EndAll ends all sessions of a person, as End does, and returns how many there were.
func (d *Door) EndAll(ctx context.Context, holder string, cause people.Cause) (int, error) {
	cmd := &people.EndSessionsOf{Holder: holder, Cause: cause}
	if err := d.engine.Do(ctx, cmd); err != nil || cmd.Ended == 0 {
		return 0, err
	}
	d.log.Info("sign-in sessions ended", "person", holder, "sessions", cmd.Ended, "cause", cause.String())
	return cmd.Ended, d.config.Keys.Await(context.WithoutCancel(ctx), cmd.Number)
}

// ErrNoRole is the error of Issue for a role that the person does not have.
var ErrNoRole = errors.New("the person does not have this role")

// Issue issues temporary credentials to a person. They end with the session, at its expiry at the latest. The audit log records the person; by has
// the address, door and operation of the request.
func (d *Door) Issue(ctx context.Context, by audit.Origin, p *Person, role identity.Role, valid time.Duration) (identity.Credentials, error) {
	if !p.Roles.Covers(role) {
		return identity.Credentials{}, ErrNoRole
	}
	valid = min(valid, access.CredentialsLifeMax, p.Expires.Sub(d.engine.Now()))
	c := d.config.Keys.Issue(identity.Session{
		Source: identity.FromPerson, SignIn: p.SignIn, Holder: p.Holder(), Name: p.SessionName(), Role: role, Account: identity.DefaultAccount,
	}, valid)
	by.Principal = p.Holder()
	err := d.engine.Do(audit.Without(ctx), &domainaudit.Note{By: by, Kind: "temporary credentials", ID: c.ID, Changes: []domainaudit.Change{
		{Field: "Expires", After: c.Expires.UTC().Format(time.RFC3339)}, {Field: "Role", After: role.String()}, {Field: "Session", After: c.Name}, {Field: "SignIn", After: p.SignIn},
	}})
	if err != nil {
		return identity.Credentials{}, err
	}
	return c, nil
}

// entry describes a person for a new session.
type entry struct {
	provider, subject, name string
	groups                  []string
	roles                   access.RoleSet
	refresh                 string
	sid                     string // id of the session at the provider
	passkey                 []byte // id of the passkey of one of the cell's own people
}

// enter begins a session and sends its cookie to the browser. The id is always new: an earlier cookie has no influence.
func (d *Door) enter(w http.ResponseWriter, r *http.Request, e entry) error {
	id := people.SignInID(domain.UUID(uuid.New())).String()
	cmd := &people.StartSession{
		SignIn: people.SignIn{
			ID: id, Kind: people.Browser, Provider: e.provider, Subject: e.subject, Name: e.name, Groups: e.groups, Roles: e.roles,
			Refresh: d.sealRefresh(id, e.refresh), Address: d.config.Proxies.Of(r), Agent: r.UserAgent(), Sid: e.sid,
		},
		Valid: d.file.Get().Session, Check: d.file.Get().Recheck, Passkey: e.passkey,
	}
	ctx := audit.With(context.WithoutCancel(r.Context()), d.origin(r, e.provider+"/"+e.subject, "SignIn"))
	if err := d.engine.Do(ctx, cmd); err != nil {
		return err
	}
	if err := d.config.Keys.Await(ctx, cmd.SignIn.Changed); err != nil {
		return err
	}
	proven(r)
	http.SetCookie(w, d.cookie(r, sessionCookie, d.signed("session", []byte(id)), int(d.file.Get().Session/time.Second)))
	d.log.Info("person signed in", "session", id, "person", cmd.SignIn.Holder(), "roles", e.roles.String(), "address", d.config.Proxies.Of(r))
	return nil
}

// aead encrypts the refresh token of a session for the state: a nonce and AES-256-GCM, with the id of the session as additional data.
func aead(by identity.CellSecret) cipher.AEAD {
	block, err := aes.NewCipher(by.RefreshTokenKey())
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the required block size
	}
	return a
}

func (d *Door) sealRefresh(id, token string) []byte {
	if token == "" || len(token) > people.RefreshMax-64 { // without a token, the session ends at its first check
		return nil
	}
	return aead(d.config.Secret).Seal(nil, nil, []byte(token), []byte(id))
}

func (d *Door) openRefresh(x *people.SignIn) (string, error) {
	var token []byte
	if !d.config.Secret.Accepts("refresh token of an identity provider", func(g identity.CellSecret) bool {
		clear, err := aead(g).Open(nil, nil, x.Refresh, []byte(x.ID))
		if err == nil {
			token = clear
		}
		return err == nil
	}) {
		return "", fmt.Errorf("refresh token of sign-in session %s: it was encrypted with a secret that is no longer accepted, or is damaged", x.ID)
	}
	return string(token), nil
}

// uses collects the last uses of sessions, and stores them every minute.
type uses struct {
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	since map[string]people.Use
}

const (
	usesEvery = time.Minute
	usesMost  = people.SessionsMax
)

func (u *uses) start(d *Door) {
	ctx, stop := context.WithCancel(context.Background())
	u.stop, u.since = stop, map[string]people.Use{}
	u.work.Go(func() {
		every := time.NewTicker(usesEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				u.store(ctx, d)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (u *uses) close() {
	u.stop()
	u.work.Wait()
}

func (u *uses) note(x people.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.since) < usesMost {
		u.since[x.ID] = x
	}
}

// store drops uses that it could not store: the next minute has later ones.
func (u *uses) store(ctx context.Context, d *Door) {
	u.mu.Lock()
	all := u.since
	u.since = map[string]people.Use{}
	u.mu.Unlock()
	cmd := &people.NoteUses{}
	flush := func() {
		if len(cmd.Uses) > 0 {
			_ = d.engine.Do(ctx, cmd)
			cmd = &people.NoteUses{}
		}
	}
	for _, x := range all {
		if cmd.Uses = append(cmd.Uses, x); len(cmd.Uses) == people.UsesMax {
			flush()
		}
	}
	flush()
}
