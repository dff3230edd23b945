//go:build !quick

package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/signin"
)

// passkeyLife is how long a browser may take to return the answer of a passkey.
const passkeyLife = 5 * time.Minute

// relyingParty checks passkeys for the host of the public URL.
type relyingParty = webauthn.WebAuthn

// openPasskeys prepares sign-ins of the cell's own people. A passkey is bound to the host of the public URL, which must be a name and not an address. Browsers
// support passkeys only over TLS or on the same machine.
func (d *Door) openPasskeys() {
	u, err := url.Parse(d.config.URL)
	if err != nil {
		return // NewDoor has parsed it
	}
	host := strings.ToLower(u.Hostname())
	if net.ParseIP(host) != nil {
		d.why = "Passkeys need a host name: set --public-url to one."
		return
	}
	if u.Scheme != "https" && host != "localhost" {
		d.why = "Passkeys need https: set --public-url to an https URL."
		return
	}
	limit := webauthn.TimeoutConfig{Timeout: passkeyLife, TimeoutUVD: passkeyLife} // for browsers; the cookie has the limit that the service enforces
	d.passkeys, err = webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Muster", RPOrigins: []string{d.config.URL},
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired},
		AttestationPreference:  protocol.PreferNoAttestation,
		Timeouts:               webauthn.TimeoutsConfig{Login: limit, Registration: limit},
	})
	if err != nil {
		d.why = "Passkeys cannot be bound to " + host + "."
		d.log.Warn("passkeys are off: they cannot be bound to the host of the public URL", "url", d.config.URL, "error", err)
	}
}

func (d *Door) routePasskeys() {
	d.routes.HandleFunc("POST "+Path+"/passkey/begin", d.forScripts(d.beginPasskey))
	d.routes.HandleFunc("POST "+Path+"/passkey/finish", d.forScripts(d.finishPasskey))
	d.routes.HandleFunc("GET "+Path+"/enrol", d.showEnrol)
	d.routes.HandleFunc("POST "+Path+"/enrol/begin", d.forScripts(d.beginEnrol))
	d.routes.HandleFunc("POST "+Path+"/enrol/finish", d.forScripts(d.finishEnrol))
}

// user is a person in the form that the library requires.
type user struct{ people.Person }

// WebAuthnID returns the user handle of the person's passkeys.
func (u *user) WebAuthnID() []byte {
	id, _ := domain.ParseID[people.ID](u.ID)
	return id[:]
}

// WebAuthnName returns a name that browsers show.
func (u *user) WebAuthnName() string { return u.Name }

// WebAuthnDisplayName returns another name that browsers show.
func (u *user) WebAuthnDisplayName() string { return u.Name }

// WebAuthnCredentials returns the passkeys.
func (u *user) WebAuthnCredentials() (all []webauthn.Credential) {
	for i := range u.Passkeys {
		p := &u.Passkeys[i]
		all = append(all, webauthn.Credential{
			ID: p.ID, PublicKey: p.Key, Flags: webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(p.Flags)), Authenticator: webauthn.Authenticator{AAGUID: p.Model, SignCount: p.Count},
		})
	}
	return all
}

// problem is an error for the script of a page.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// forScripts answers the script of a page with JSON. Only pages of this service may send such requests, because they contain a cookie.
func (d *Door) forScripts(do func(w http.ResponseWriter, r *http.Request, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reply := func(status int, x any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(x) // fails if the client has gone
		}
		type refusal struct {
			Problem string `json:"problem"`
		}
		switch {
		case !d.Passkeys():
			reply(http.StatusNotFound, refusal{"This service takes no passkeys. " + d.WhyNoPasskeys()})
			return
		case !d.OwnPage(r):
			reply(http.StatusForbidden, refusal{"Another site's page sent this request."})
			return
		case !d.config.Private(r):
			reply(http.StatusForbidden, refusal{"This connection is not encrypted: use https."})
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
		if err != nil {
			reply(http.StatusRequestEntityTooLarge, refusal{fmt.Sprintf("The request has more than %d bytes.", bodyMax)})
			return
		}
		x, err := do(w, r, body)
		if err == nil {
			reply(http.StatusOK, x)
			return
		}
		if p, ok := errors.AsType[*problem](err); ok {
			reply(p.status, refusal{p.text})
			return
		}
		status, text := d.problem(err)
		reply(status, refusal{text})
	}
}

// beginPasskey answers with a challenge. It takes no name, so it reveals nothing about who has passkeys here.
func (d *Door) beginPasskey(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	var in struct {
		Back string `json:"back"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &problem{http.StatusBadRequest, "The body is not JSON."}
	}
	options, session, err := d.passkeys.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, err
	}
	d.setChallenge(w, r, session, signing{Provider: people.Own, Back: backOf(in.Back)})
	return options, nil
}

func (d *Door) setChallenge(w http.ResponseWriter, r *http.Request, session *webauthn.SessionData, s signing) {
	challenge, err := json.Marshal(session)
	if err != nil {
		panic(err) // texts and numbers
	}
	now := d.engine.Now()
	s.Challenge, s.Issued, s.Expires = challenge, domain.TimeOf(now), now.Add(passkeyLife).UnixMilli()
	http.SetCookie(w, d.cookie(r, signingCookie, d.sealed(&s), int(passkeyLife/time.Second)))
}

// challenge returns the challenge of a browser. It removes the cookie, so that an honest browser uses it once; the core accepts each challenge only once.
func (d *Door) challenge(w http.ResponseWriter, r *http.Request) (s signing, session webauthn.SessionData, err error) {
	s, ok := d.unsealed(r)
	http.SetCookie(w, d.cookie(r, signingCookie, "", -1))
	if !ok || s.Provider != people.Own || json.Unmarshal(s.Challenge, &session) != nil {
		return s, session, &problem{http.StatusBadRequest, "This took too long, or was started in another window. Try again."}
	}
	return s, session, nil
}

// wrongPasskey is the message for every mistake in the answer of a passkey, so that it does not reveal which passkeys and people exist.
const wrongPasskey = "This passkey is not registered with this service, or its answer is wrong."

func (d *Door) wrong(w http.ResponseWriter, r *http.Request, cause error, text string) error {
	if slow := d.config.Signins.Fail(signin.Failure{From: d.config.Proxies.Of(r), Reason: signin.WrongToken, Cause: cause}); slow != nil {
		w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
		return &problem{http.StatusTooManyRequests, slow.Error()}
	}
	return &problem{http.StatusUnauthorized, text}
}

// finishPasskey signs in a person whose passkey signed the challenge.
func (d *Door) finishPasskey(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	s, session, err := d.challenge(w, r)
	if err != nil {
		return nil, err
	}
	answer, err := protocol.ParseCredentialRequestResponseBytes(body)
	if err != nil {
		return nil, d.wrong(w, r, plainly(err), wrongPasskey)
	}
	var unread error // why the person cannot be looked up
	found, credential, err := d.passkeys.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		if len(handle) != len(people.ID{}) {
			return nil, errors.New("the user handle is not from this service")
		}
		x, ok, err := d.person(r.Context(), people.ID(handle).String())
		switch {
		case err != nil:
			unread = err
			return nil, err
		case !ok:
			return nil, errors.New("there is no such person")
		}
		return &user{x}, nil
	}, session, answer)
	if unread != nil {
		return nil, unread
	}
	if err != nil {
		return nil, d.wrong(w, r, plainly(err), wrongPasskey)
	}
	person := found.(*user)
	use := &people.UsePasskey{Person: person.ID, ID: credential.ID, Count: answer.Response.AuthenticatorData.Counter, Flags: uint8(answer.Response.AuthenticatorData.Flags), Challenge: s.Issued}
	if err := d.engine.Do(r.Context(), use); err != nil {
		if refused, ok := errors.AsType[*domain.Refusal](err); ok && (refused.Reason == domain.Conflict || refused.Reason == domain.NotFound) {
			d.log.Warn("passkey refused: its answer or the authenticator may have been copied", "person", person.Name, "reason", refused.Detail, "address", d.config.Proxies.Of(r))
			return nil, d.wrong(w, r, err, wrongPasskey)
		}
		return nil, err
	}
	roles := d.OwnRoles(use.Groups)
	if roles == 0 {
		d.config.Audit.RefusedAs(d.origin(r, people.Own+"/"+person.ID, "SignIn"), "NoRole")
		return nil, &problem{http.StatusForbidden, "You are " + use.Name + ", but none of your groups gives you a role here. Ask the operator of this service."}
	}
	if err := d.enter(w, r, entry{provider: people.Own, subject: person.ID, name: use.Name, groups: use.Groups, roles: roles, passkey: credential.ID}); err != nil {
		return nil, err
	}
	return map[string]string{"back": backOf(s.Back)}, nil
}

// plainly adds the library's message for developers, which contains no secrets, to an error of the library.
func plainly(err error) error {
	if p, ok := errors.AsType[*protocol.Error](err); ok {
		return fmt.Errorf("%s: %s", p.Details, people.Short(p.DevInfo, 300))
	}
	return err
}

// showEnrol serves the page of a link. Viewing it does not use up the link, so programs that fetch links in advance do no harm.
func (d *Door) showEnrol(w http.ResponseWriter, r *http.Request) {
	d.write(w, r, http.StatusOK, "enrol", &page{Title: "Register a passkey", Passkeys: d.Passkeys(), Why: d.WhyNoPasskeys()})
}

type enrolRequest struct {
	Link       string          `json:"link"` // PERSON.SECRET
	Name       string          `json:"name"` // of the passkey, for its owner
	Credential json.RawMessage `json:"credential"`
}

const wrongLink = "This link was used already, has expired or is incomplete. Ask for a new one."

// enrolling returns the person of a valid link.
func (d *Door) enrolling(w http.ResponseWriter, r *http.Request, body []byte) (in enrolRequest, person people.Person, hash string, err error) {
	if json.Unmarshal(body, &in) != nil {
		return in, person, "", &problem{http.StatusBadRequest, "The body is not JSON."}
	}
	id, secret, _ := strings.Cut(in.Link, ".")
	hash = enrolmentHash(secret)
	person, ok, err := d.person(r.Context(), id)
	if err != nil {
		return in, person, "", err
	}
	if !ok || !person.Enrolment.Open(hash, domain.TimeOf(d.engine.Now())) {
		return in, person, "", d.wrong(w, r, nil, wrongLink)
	}
	return in, person, hash, nil
}

func (d *Door) beginEnrol(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	_, person, _, err := d.enrolling(w, r, body)
	if err != nil {
		return nil, err
	}
	u := &user{person}
	var known []protocol.CredentialDescriptor
	for _, c := range u.WebAuthnCredentials() {
		known = append(known, c.Descriptor())
	}
	options, session, err := d.passkeys.BeginRegistration(u, webauthn.WithExclusions(known))
	if err != nil {
		return nil, err
	}
	session.CredParams = nil // the default ones, which would make the cookie too large
	d.setChallenge(w, r, session, signing{Provider: people.Own, Enrol: person.ID})
	return map[string]any{"publicKey": options.Response, "name": person.Name}, nil
}

func (d *Door) finishEnrol(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	in, person, hash, err := d.enrolling(w, r, body)
	if err != nil {
		return nil, err
	}
	s, session, err := d.challenge(w, r)
	if err != nil {
		return nil, err
	}
	if s.Enrol != person.ID {
		return nil, &problem{http.StatusBadRequest, "Another registration has begun since. Open the link again."}
	}
	session.CredParams = webauthn.CredentialParametersDefault()
	answer, err := protocol.ParseCredentialCreationResponseBytes(in.Credential)
	if err != nil {
		return nil, d.wrong(w, r, plainly(err), "The passkey's answer is wrong.")
	}
	c, err := d.passkeys.CreateCredential(&user{person}, session, answer)
	if err != nil {
		return nil, d.wrong(w, r, plainly(err), "The passkey's answer is wrong.")
	}
	key := people.Passkey{ID: c.ID, Key: c.PublicKey, Count: c.Authenticator.SignCount, Flags: uint8(c.Flags.ProtocolValue()), Name: in.Name}
	if !bytes.Equal(c.Authenticator.AAGUID, make([]byte, 16)) {
		key.Model = slices.Clone(c.Authenticator.AAGUID)
	}
	ctx := audit.With(context.WithoutCancel(r.Context()), d.origin(r, people.Own+"/"+person.ID, "AddPasskey"))
	if err := d.engine.Do(ctx, &people.AddPasskey{Person: person.ID, Hash: hash, Passkey: key}); err != nil {
		return nil, err
	}
	d.log.Info("passkey registered", "person", person.Name, "address", d.config.Proxies.Of(r))
	return map[string]string{"back": SignInPath(home)}, nil
}
