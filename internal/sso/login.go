package sso

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/wire"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// `aws login` of AWS CLI 2.32 and later gets short-lived credentials from a browser on the same machine, or from one on another machine whose person
// copies the code. It renews them with a refresh token that is bound to its own key (DPoP).
const (
	loginAuthorizePath = "/v1/authorize"
	loginTokenPath     = "/v1/token"
	confirmationPath   = "/v1/sessions/confirmation"

	sameDevice  = "arn:aws:signin:::devtools/same-device"
	crossDevice = "arn:aws:signin:::devtools/cross-device"

	// loginLife is how long the credentials are valid. Source: service model of AWS Sign-In, ExpiresIn.
	loginLife = 15 * time.Minute

	loginCodeMax = 512 // characters; source: the same, AuthorizationCode
)

var loginClients = map[string]string{sameDevice: "The AWS CLI on this computer", crossDevice: "The AWS CLI on another machine"}

// Errors of aws login. Source: service model of AWS Sign-In, OAuth2ErrorCode.
var (
	loginInvalid = problem{kind: "ValidationException", status: http.StatusBadRequest, error: "INVALID_REQUEST"}
	loginExpired = problem{kind: "AccessDeniedException", status: http.StatusForbidden, error: "TOKEN_EXPIRED"}
	codeExpired  = problem{kind: "AccessDeniedException", status: http.StatusForbidden, error: "AUTHCODE_EXPIRED"}
	notPermitted = problem{kind: "AccessDeniedException", status: http.StatusForbidden, error: "INSUFFICIENT_PERMISSIONS"}
	loginTooMany = problem{kind: "TooManyRequestsError", status: http.StatusTooManyRequests, error: "INVALID_REQUEST"}
	loginFailed  = problem{kind: "InternalServerException", status: http.StatusInternalServerError, error: "server_error"}
)

// loginCode is an authorization code of aws login or, without Challenge, its refresh token.
type loginCode struct {
	ID        string // random
	SignIn    string
	Role      identity.Role
	Client    string
	Redirect  []byte // digest of the redirect URI
	Challenge []byte // SHA-256 of the verifier
	Key       []byte // digest of the DPoP key; only of a refresh token
	Expires   time.Time
}

func (x *loginCode) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.SignIn)
	wire.Int(c, 3, &x.Role)
	c.String(4, &x.Client)
	c.Bytes(5, &x.Redirect)
	c.Bytes(6, &x.Challenge)
	c.Bytes(7, &x.Key)
	instant(c, 8, &x.Expires)
}

// readLogin checks a request for a code of aws login.
func (d *Door) readLogin(r *http.Request) (x authorization, problem string) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return x, "The address of this page is incomplete. Start again with aws login."
	}
	for _, values := range q {
		if len(values) > 1 {
			return x, "The address of this page contains a parameter twice. Start again with aws login."
		}
	}
	x.id, x.state = q.Get("client_id"), q.Get("state")
	uri := q.Get("redirect_uri")
	switch x.id {
	case sameDevice:
		own := client{Redirects: []string{"http://127.0.0.1/oauth/callback"}}
		if !own.redirects(uri) {
			return x, "The program asked for the answer at an address that is not on this computer. Nothing was approved."
		}
		x.redirect, _ = loopback(uri)
	case crossDevice:
		u, err := url.Parse(uri)
		if err != nil || len(uri) > redirectMax || u.Path != confirmationPath || !d.isOurs(r, u.Host) {
			return x, "The program asked for the answer at an address of another service. Nothing was approved."
		}
	default:
		return x, "The program that sent you here is not the AWS CLI."
	}
	x.challenge, err = base64.RawURLEncoding.Strict().DecodeString(q.Get("code_challenge"))
	if method := q.Get("code_challenge_method"); q.Get("response_type") != "code" || len(x.state) > stateMax || x.state == "" || err != nil || len(x.challenge) != 32 || method != "SHA-256" && method != "S256" {
		return x, "The address of this page is not from aws login. Start again there."
	}
	return x, ""
}

// showLogin asks the person whether aws login may act for them, and in which role.
func (d *Door) showLogin(w http.ResponseWriter, r *http.Request) {
	x, problem := d.readLogin(r)
	if problem != "" {
		d.message(w, http.StatusBadRequest, problem)
		return
	}
	p, ok := d.person(w, r, r.URL.RequestURI())
	if !ok {
		return
	}
	v := view{Title: "Allow access", Who: p.Name, Token: d.formToken(&p, loginAuthorizePath+r.URL.RawQuery), Client: loginClients[x.id], Query: loginAuthorizePath + "?" + r.URL.RawQuery, Roles: roleNames(&p)}
	if x.redirect != nil {
		v.Target = x.redirect.Host
		d.policy(w, x.redirect.Scheme+"://"+x.redirect.Host)
	}
	d.show(w, http.StatusOK, "login", v)
}

func (d *Door) answerLogin(w http.ResponseWriter, r *http.Request) {
	x, problem := d.readLogin(r)
	if problem != "" {
		d.message(w, http.StatusBadRequest, problem)
		return
	}
	p, ok := d.person(w, r, r.URL.RequestURI())
	if !ok {
		return
	}
	role, may := roleNamed(&p, r.PostForm.Get("role"))
	approved := r.PostForm.Get("answer") == "approve"
	switch {
	case !d.checkForm(r, &p, loginAuthorizePath+r.URL.RawQuery):
		d.message(w, http.StatusForbidden, wrongForm)
		return
	case approved && !may:
		d.message(w, http.StatusForbidden, "You do not have this role. Nothing was approved.")
		return
	case !approved && x.redirect == nil:
		d.message(w, http.StatusOK, "The program was refused. You can close this page.")
		return
	case !approved:
		d.back(w, r, &x, "error", "access_denied")
		return
	}
	err := d.config.Engine.Do(r.Context(), &domainaudit.Note{By: d.origin(r, &p, "AuthorizeLogin"), Kind: "sign-in client", ID: x.id, Changes: []domainaudit.Change{
		{Field: "Role", After: role.String()}, {Field: "Session", After: p.SignIn},
	}})
	if err != nil {
		d.unable(w, err)
		return
	}
	code := d.seal(loginKind, &loginCode{ID: newID(), SignIn: p.SignIn, Role: role, Client: x.id, Redirect: digest(r.URL.Query().Get("redirect_uri")), Challenge: x.challenge, Expires: d.now().Add(codeLife)})
	if x.redirect != nil {
		d.back(w, r, &x, "code", code)
		return
	}
	text := url.Values{"state": {x.state}, "code": {code}}.Encode()
	d.show(w, http.StatusOK, "copy", view{Title: "Authorization code", Who: p.Name, Code: base64.StdEncoding.EncodeToString([]byte(text))})
}

type loginAsks struct {
	ClientID     string `json:"clientId"`
	GrantType    string `json:"grantType"`
	Code         string `json:"code"`
	RedirectURI  string `json:"redirectUri"`
	CodeVerifier string `json:"codeVerifier"`
	RefreshToken string `json:"refreshToken"`
}

type loginKey struct {
	ID     string `json:"accessKeyId"`
	Secret string `json:"secretAccessKey"`
	Token  string `json:"sessionToken"`
}

type loginTokens struct {
	AccessToken  loginKey `json:"accessToken"`
	TokenType    string   `json:"tokenType"`
	ExpiresIn    int      `json:"expiresIn"`
	RefreshToken string   `json:"refreshToken"`
	IDToken      string   `json:"idToken,omitempty"`
}

// createLoginToken is CreateOAuth2Token.
func (d *Door) createLoginToken(w http.ResponseWriter, r *http.Request) (any, *problem) {
	if !d.asks.Allow(d.from(r)) {
		return nil, loginTooMany.because("Too many requests for tokens from this address.")
	}
	var in loginAsks
	if p := d.read(w, r, &in); p != nil {
		q := loginInvalid
		q.status = p.status
		return nil, q.because(p.text)
	}
	if r.URL.RawQuery != "" {
		return nil, loginInvalid.because("Tokens for services are not supported: want an empty query.")
	}
	if loginClients[in.ClientID] == "" {
		return nil, loginInvalid.because("clientId: " + excerpt.Short(in.ClientID) + "; want " + sameDevice + " or " + crossDevice)
	}
	key, proof, err := d.prove(r)
	if err != nil {
		return nil, loginInvalid.because("DPoP: " + err.Error())
	}
	var x loginCode
	switch in.GrantType {
	case codeGrant:
		if p := d.redeemLogin(r, &in, &x); p != nil {
			return nil, p
		}
	case refreshGrant:
		if !d.open(renewKind, in.RefreshToken, tokenMax, &x) || x.Client != in.ClientID || subtle.ConstantTimeCompare(x.Key, key) != 1 {
			return nil, d.wrongLogin(r, loginExpired, "The refresh token is unknown, or another program's.")
		}
	default:
		return nil, loginInvalid.because("grantType: " + excerpt.Short(in.GrantType) + "; want " + codeGrant + " or " + refreshGrant)
	}
	person, ok := d.config.People.Session(r.Context(), x.SignIn)
	valid := min(loginLife, person.Expires.Sub(d.now())).Truncate(time.Second)
	switch {
	case !ok || valid <= 0:
		return nil, loginExpired.because("The sign-in session has ended.")
	case !mayTake(&person, x.Role):
		return nil, notPermitted.because("The person no longer has the role " + x.Role.String() + ".")
	}
	if p := d.spendProof(r, proof, x.SignIn); p != nil {
		return nil, p
	}
	c, err := d.config.People.Issue(r.Context(), d.origin(r, &person, "CreateOAuth2Token"), &person, x.Role, valid)
	if err != nil {
		return nil, d.failure("CreateOAuth2Token", loginFailed, err)
	}
	out := loginTokens{loginKey{c.ID, c.Secret, c.Token}, "aws_sigv4", int(valid / time.Second),
		d.seal(renewKind, &loginCode{SignIn: x.SignIn, Role: x.Role, Client: x.Client, Key: key, Expires: time.UnixMilli(0)}), ""}
	if in.GrantType == codeGrant {
		out.IDToken = d.idToken(c.ARN())
	}
	return out, nil
}

// wrongLogin counts a code or token that this cell has not issued, or has issued to another program.
func (d *Door) wrongLogin(r *http.Request, of problem, text string) *problem {
	return d.signInFailed(r, signin.WrongToken, loginTooMany, of.because(text))
}

// redeemLogin spends a code.
func (d *Door) redeemLogin(r *http.Request, in *loginAsks, x *loginCode) *problem {
	switch {
	case !d.open(loginKind, in.Code, loginCodeMax, x):
		return d.wrongLogin(r, codeExpired, "The authorization code is unknown.")
	case !d.now().Before(x.Expires):
		return codeExpired.because("The authorization code has expired.")
	}
	if p := d.spend(r, x.ID, x.SignIn, x.Expires); p != nil {
		q := codeExpired
		if p.status >= http.StatusInternalServerError {
			q = loginFailed
		}
		return q.because(p.text)
	}
	if x.Client != in.ClientID || !bytes.Equal(x.Redirect, digest(in.RedirectURI)) || !verifierForm.MatchString(in.CodeVerifier) || subtle.ConstantTimeCompare(x.Challenge, digest(in.CodeVerifier)) != 1 {
		return d.wrongLogin(r, codeExpired, "The authorization code is another program's.")
	}
	return nil
}

// idToken tells the program under which name to store the sign-in. It needs no verification, because the program gets it directly from this service.
func (d *Door) idToken(arn string) string {
	encode := func(x any) string {
		text, err := json.Marshal(x)
		if err != nil {
			panic("sso: id token: " + err.Error()) // texts and numbers always marshal
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := encode(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + encode(map[string]any{"sub": arn, "iat": d.now().Unix()})
	return text + "." + base64.RawURLEncoding.EncodeToString(d.config.Secret.SignInMAC([]byte(text)))
}
