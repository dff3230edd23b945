package sso

import (
	"bytes"
	"crypto/subtle"
	"net/http"
	"regexp"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	domaingrants "github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// Lifetimes of tokens. None outlives the sign-in session.
const (
	accessLife = time.Hour     // of an access token that a refresh token can renew
	onlyLife   = 8 * time.Hour // of one without a refresh token, as at AWS
	codeLife   = time.Minute   // of an authorization code: the program redeems it at once
)

type tokenAsks struct {
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	GrantType    string   `json:"grantType"`
	DeviceCode   string   `json:"deviceCode"`
	Code         string   `json:"code"`
	RefreshToken string   `json:"refreshToken"`
	Scope        []string `json:"scope"`
	RedirectURI  string   `json:"redirectUri"`
	CodeVerifier string   `json:"codeVerifier"`
}

type tokens struct {
	AccessToken  string `json:"accessToken"`
	TokenType    string `json:"tokenType"`
	ExpiresIn    int    `json:"expiresIn"`
	RefreshToken string `json:"refreshToken,omitempty"`
}

func (d *Door) createToken(w http.ResponseWriter, r *http.Request) (any, *problem) {
	if !d.asks.Allow(d.from(r)) {
		return nil, slowDown.because("Too many requests for tokens from this address.")
	}
	var in tokenAsks
	if p := d.read(w, r, &in); p != nil {
		return nil, p
	}
	g, ok := grantNames[in.GrantType]
	if !ok {
		return nil, unsupportedGrant.because("grantType: " + excerpt.Short(in.GrantType) + "; want " + deviceGrant + ", " + codeGrant + " or " + refreshGrant)
	}
	x, p := d.known(r, in.ClientID, in.ClientSecret)
	if p != nil {
		return nil, p
	}
	if x.Grants&g == 0 {
		return nil, unauthorizedClient.because("The client was not registered for the grant type " + in.GrantType + ".")
	}
	for _, scope := range in.Scope {
		if scope != accountScope {
			return nil, invalidScope.because("scope: " + excerpt.Short(scope) + "; want " + accountScope)
		}
	}
	signIn, renews := "", x.Renews
	switch g {
	case byDevice:
		signIn, renews, p = d.byDevice(r, &in)
	case byCode:
		signIn, p = d.byCode(r, &in)
	case byRefresh:
		signIn, p = d.byRefresh(r, &in)
	}
	if p != nil {
		return nil, p
	}
	answer, p := d.tokens(r, signIn, short(in.ClientID), renews)
	if p == nil {
		connlimit.Prove(r.Context())
	}
	return answer, p
}

// tokens issues tokens for a sign-in session that has not ended.
func (d *Door) tokens(r *http.Request, signIn, client string, renews bool) (any, *problem) {
	person, ok := d.config.People.Session(r.Context(), signIn)
	now := d.now()
	life := onlyLife
	if renews {
		life = accessLife
	}
	if life = min(life, person.Expires.Sub(now)).Truncate(time.Second); !ok || life <= 0 {
		return nil, invalidGrant.because("The sign-in session has ended.")
	}
	x := tokens{TokenType: "Bearer", ExpiresIn: int(life / time.Second), AccessToken: d.seal(accessKind, &grant{SignIn: signIn, Client: client, Expires: now.Add(life + identity.Grace)})}
	if renews { // the same each time: several programs share it in a file, and may renew at the same time
		x.RefreshToken = d.seal(refreshKind, &grant{SignIn: signIn, Client: client, Expires: time.UnixMilli(0)})
	}
	return x, nil
}

// wrong counts a code or token that this cell has not issued, or has issued to another client.
func (d *Door) wrong(r *http.Request, text string) *problem {
	return d.signInFailed(r, signin.WrongToken, slowDown, invalidGrant.because(text))
}

func (d *Door) byDevice(r *http.Request, in *tokenAsks) (string, bool, *problem) {
	var x deviceCode
	if !d.open(deviceKind, in.DeviceCode, tokenMax, &x) || x.Client != short(in.ClientID) {
		return "", false, d.wrong(r, "The device code is unknown.")
	}
	return d.collect(r, in.DeviceCode, &x)
}

// verifierForm is the form of a code verifier. Source: RFC 7636, section 4.1.
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

func (d *Door) byCode(r *http.Request, in *tokenAsks) (string, *problem) {
	var x authCode
	switch {
	case !d.open(codeKind, in.Code, tokenMax, &x):
		return "", d.wrong(r, "The authorization code is unknown.")
	case !d.now().Before(x.Expires):
		return "", invalidGrant.because("The authorization code has expired.")
	}
	// Spend the code first: a code with a wrong proof is in the wrong hands, so it must not give anything
	// afterwards.
	if p := d.spend(r, x.ID, x.SignIn, x.Expires); p != nil {
		return "", p
	}
	switch {
	case x.Client != short(in.ClientID):
		return "", d.wrong(r, "The authorization code is another client's.")
	case !bytes.Equal(x.Redirect, digest(in.RedirectURI)):
		return "", d.wrong(r, "redirectUri is not the address that the authorization code was sent to.")
	case !verifierForm.MatchString(in.CodeVerifier) || subtle.ConstantTimeCompare(x.Challenge, digest(in.CodeVerifier)) != 1:
		return "", d.wrong(r, "codeVerifier does not match the challenge.")
	}
	return x.SignIn, nil
}

// spend makes sure that a code is used only once at all nodes.
func (d *Door) spend(r *http.Request, id, signIn string, expires time.Time) *problem {
	err := d.config.Engine.Do(r.Context(), &domaingrants.UseCode{ID: id, SignIn: signIn, Expires: domain.TimeOf(expires)})
	switch {
	case domain.IsRefused(err, domain.Conflict):
		d.stolen(r, "authorization code", signIn)
		return invalidGrant.because("The authorization code was used before.")
	case domain.IsRefused(err, domain.NotFound):
		return invalidGrant.because("The authorization code has expired.")
	case err != nil:
		return d.failure("CreateToken", internalServer, err)
	}
	return nil
}

func (d *Door) byRefresh(r *http.Request, in *tokenAsks) (string, *problem) {
	var x grant
	if !d.open(refreshKind, in.RefreshToken, tokenMax, &x) || x.Client != short(in.ClientID) {
		return "", d.wrong(r, "The refresh token is unknown, or another client's.")
	}
	return x.SignIn, nil
}
