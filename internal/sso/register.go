package sso

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// grants is a set of OAuth grant types. Tokens contain the bits, so their values must not change.
type grants uint8

const (
	byDevice grants = 1 << iota
	byCode
	byRefresh
)

const (
	deviceGrant  = "urn:ietf:params:oauth:grant-type:device_code"
	codeGrant    = "authorization_code"
	refreshGrant = "refresh_token"
)

var grantNames = map[string]grants{deviceGrant: byDevice, codeGrant: byCode, refreshGrant: byRefresh}

// accountScope is the only scope: it lets a client get temporary credentials of the person's roles, and renew its access token.
const accountScope = "sso:account:access"

// Limits of a registration.
const (
	clientLife   = 90 * 24 * time.Hour
	nameMax      = 128 // bytes
	redirectsMax = 4
	redirectMax  = 256 // bytes
)

type registration struct {
	ClientName   string   `json:"clientName"`
	ClientType   string   `json:"clientType"`
	Scopes       []string `json:"scopes"`
	RedirectURIs []string `json:"redirectUris"`
	GrantTypes   []string `json:"grantTypes"`
}

type registered struct {
	ClientID              string `json:"clientId"`
	ClientSecret          string `json:"clientSecret"`
	IssuedAt              int64  `json:"clientIdIssuedAt"`
	ExpiresAt             int64  `json:"clientSecretExpiresAt"`
	AuthorizationEndpoint string `json:"authorizationEndpoint"`
	TokenEndpoint         string `json:"tokenEndpoint"`
}

// registerClient stores nothing: the client id contains the registration.
func (d *Door) registerClient(w http.ResponseWriter, r *http.Request) (any, *problem) {
	if !d.registers.Allow(d.from(r)) {
		return nil, slowDown.because("Too many clients were registered from this address; try again in a moment.")
	}
	var in registration
	if p := d.read(w, r, &in); p != nil {
		return nil, p
	}
	x, p := clientOf(&in)
	if p != nil {
		return nil, p
	}
	now := d.now()
	x.Expires = now.Add(clientLife)
	id := d.seal(clientKind, &x)
	return registered{id, clientSecret(d.config.Secret, id), now.Unix(), x.Expires.Unix(), d.base(r) + authorizePath, d.base(r) + "/token"}, nil
}

func clientOf(in *registration) (x client, p *problem) {
	switch {
	case in.ClientType != "public":
		return x, invalidMetadata.because("clientType: " + excerpt.Short(in.ClientType) + "; want public")
	case in.ClientName == "" || len(in.ClientName) > nameMax || !printable(in.ClientName):
		return x, invalidMetadata.because("clientName: " + excerpt.Short(in.ClientName) + "; want 1 to 128 bytes of text in one line")
	}
	x.Name = in.ClientName
	for _, scope := range in.Scopes {
		if scope != accountScope {
			return x, invalidScope.because("scopes: " + excerpt.Short(scope) + "; want " + accountScope)
		}
		x.Renews = true
	}
	for _, name := range in.GrantTypes {
		g, ok := grantNames[name]
		if !ok {
			return x, unsupportedGrant.because("grantTypes: " + excerpt.Short(name) + "; want " + deviceGrant + ", " + codeGrant + " or " + refreshGrant)
		}
		x.Grants |= g
	}
	if x.Grants == 0 {
		x.Grants = byDevice | byRefresh // clients from before 2024 name none
	}
	x.Renews = x.Renews && x.Grants&byRefresh != 0
	if len(in.RedirectURIs) > redirectsMax {
		return x, invalidRedirect.because("redirectUris: want at most 4")
	}
	for _, uri := range in.RedirectURIs {
		if _, ok := loopback(uri); !ok {
			return x, invalidRedirect.because("redirectUris: " + excerpt.Short(uri) + "; want http:// with a loopback address, without a query, such as http://127.0.0.1/oauth/callback")
		}
		x.Redirects = append(x.Redirects, uri)
	}
	if x.Grants&byCode != 0 && len(x.Redirects) == 0 {
		return x, invalidRedirect.because("redirectUris: the grant type " + codeGrant + " needs one")
	}
	return x, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// loopback parses a redirect URI. Only programs on the person's own machine get codes. Anyone can register a client, so a page at any other address
// could collect the codes of people who mistake it for another one.
func loopback(uri string) (*url.URL, bool) {
	u, err := url.Parse(uri)
	if err != nil || len(uri) > redirectMax || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" || strings.Contains(uri, "#") {
		return nil, false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, false
		}
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u, u.Hostname() == "localhost" || err == nil && address.Zone() == "" && address.IsLoopback()
}

// redirects reports whether a client may have its code sent to a URI. The client must have registered it; if it has registered it without a port, any
// port is allowed, because programs on a person's machine listen on a port that is free at the time. Source: RFC 8252, section 7.3.
func (x *client) redirects(uri string) bool {
	asked, ok := loopback(uri)
	return ok && slices.ContainsFunc(x.Redirects, func(known string) bool {
		own, ok := loopback(known)
		return ok && own.Hostname() == asked.Hostname() && own.EscapedPath() == asked.EscapedPath() && (own.Port() == "" || own.Port() == asked.Port())
	})
}
