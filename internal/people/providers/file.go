// Package providers has the identity providers in the settings. It is their relying party in OpenID Connect.
package providers

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// Bounds of the file.
const (
	providersMax  = 16
	secretMax     = 4 << 10 // bytes of a client's secret
	recheckLeast  = 10 * time.Second
	recheckMost   = 24 * time.Hour
	sessionLeast  = time.Minute
	parametersMax = 16
)

// Defaults of the file.
const (
	DefaultRecheck = 15 * time.Minute
	DefaultSession = 12 * time.Hour
)

// File configures how people sign in.
type File struct {
	Providers []*Provider
	Own       Roles         // by the groups of the cell's own people
	NoOwn     bool          // the cell has no people of its own
	Recheck   time.Duration // within which a provider must confirm a person again
	Session   time.Duration // life of a sign-in session
}

// Roles are the groups that grant each role. The group * stands for all people of the provider.
type Roles map[access.Role][]string

// Of returns the roles that groups grant.
func (r Roles) Of(groups []string) (set access.RoleSet) {
	for role, giving := range r {
		if slices.ContainsFunc(giving, func(g string) bool { return g == "*" || slices.Contains(groups, g) }) {
			set |= access.Roles(role)
		}
	}
	return set
}

// Groups returns the groups that grant a role, sorted, without the one that stands for all people.
func (r Roles) Groups() []string {
	var all []string
	for _, giving := range r {
		all = append(all, giving...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(g string) bool { return g == "*" })
}

// ownRoles returns the default roles of the cell's own people: the group with the name of a role grants it.
func ownRoles() Roles {
	return Roles{access.Admin: {"admin"}, access.Backend: {"backend"}, access.Client: {"client"}, access.ReadOnly: {"readonly"}}
}

// text is the form of the file.
type text struct {
	Providers []providerText `json:"providers"`
	Own       *struct {
		Off   bool                `json:"off"`
		Roles map[string][]string `json:"roles"`
	} `json:"own"`
	Recheck string `json:"recheck"`
	Session string `json:"session"`
}

type providerText struct {
	Name             string              `json:"name"`
	Title            string              `json:"title"`
	Issuer           string              `json:"issuer"`
	ClientID         string              `json:"clientId"`
	ClientSecretFile string              `json:"clientSecretFile"`
	ClientSecretEnv  string              `json:"clientSecretEnv"`
	Scopes           []string            `json:"scopes"`
	GroupsClaim      string              `json:"groupsClaim"`
	NameClaim        string              `json:"nameClaim"`
	GroupPrefix      string              `json:"groupPrefix"`
	Roles            map[string][]string `json:"roles"`
	Parameters       map[string]string   `json:"parameters"`
}

// ReadFile reads the file; an empty path means a file without providers.
func ReadFile(path string) (*File, error) {
	if path == "" {
		return parse([]byte("{}"))
	}
	return configfile.Read(path, parse)
}

// parse parses the file and reports all mistakes, not only the first.
func parse(content []byte) (*File, error) {
	var t text
	if err := configfile.Decode(content, &t); err != nil {
		return nil, err
	}
	f := &File{Own: ownRoles(), Recheck: DefaultRecheck, Session: DefaultSession}
	var errs []error
	period := func(name, text string, into *time.Duration, least, most time.Duration) {
		if text == "" {
			return
		}
		x, err := time.ParseDuration(text)
		if err != nil || x < least || x > most {
			errs = append(errs, fmt.Errorf("%s: %q, want %v to %v", name, text, least, most))
		}
		*into = x
	}
	period("recheck", t.Recheck, &f.Recheck, recheckLeast, recheckMost)
	period("session", t.Session, &f.Session, sessionLeast, people.SessionLifeMax)
	if t.Own != nil {
		f.NoOwn = t.Own.Off
		if t.Own.Roles != nil {
			roles, err := rolesOf("own.roles", t.Own.Roles)
			f.Own, errs = roles, append(errs, err)
		}
	}
	if len(t.Providers) > providersMax {
		errs = append(errs, fmt.Errorf("providers: %d, want at most %d", len(t.Providers), providersMax))
	}
	names, prefixes := map[string]bool{}, map[string]string{}
	for i := range t.Providers {
		x := &t.Providers[i]
		p, err := x.provider()
		if err != nil {
			errs = append(errs, fmt.Errorf("providers[%d]: %w", i, err))
			continue
		}
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("providers[%d].name: %q is the name of another provider", i, p.Name))
		}
		if other, taken := prefixes[x.GroupPrefix]; taken {
			errs = append(errs, fmt.Errorf("providers[%d].groupPrefix: %q is also the prefix of %s: want different prefixes, or a group of one provider would count as that of the other", i, x.GroupPrefix, other))
		}
		names[p.Name], prefixes[x.GroupPrefix] = true, p.Name
		f.Providers = append(f.Providers, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

func (x *providerText) provider() (*Provider, error) {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !configfile.IsName(x.Name) || x.Name == people.Own {
		wrong("name: %q, want 1 to %d lower-case letters, digits and hyphens, and not %s", x.Name, people.ProviderMax, people.Own)
	}
	if len(x.Title) > people.NameMax || people.Short(x.Title, people.NameMax) != x.Title {
		wrong("title: %.200q, want one line of at most %d bytes", x.Title, people.NameMax)
	}
	issuer, err := url.Parse(x.Issuer)
	if err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil || !tokenkeys.Private(issuer) {
		wrong("issuer: %.200q, want an https URL without a query, such as https://id.example.com", x.Issuer)
		issuer = &url.URL{}
	}
	if x.ClientID == "" || len(x.ClientID) > 512 {
		wrong("clientId: %d bytes, want 1 to 512", len(x.ClientID))
	}
	if x.ClientSecretFile != "" && x.ClientSecretEnv != "" {
		wrong("clientSecretFile and clientSecretEnv: want at most one of them")
	}
	if len(x.GroupPrefix) > 64 {
		wrong("groupPrefix: %d bytes, want at most 64", len(x.GroupPrefix))
	}
	if len(x.Parameters) > parametersMax {
		wrong("parameters: %d, want at most %d", len(x.Parameters), parametersMax)
	}
	for name := range x.Parameters {
		if slices.Contains(ownParameters, name) {
			wrong("parameters.%s: the service sets it itself", name)
		}
	}
	roles, err := rolesOf("roles", x.Roles)
	if err != nil {
		errs = append(errs, err)
	}
	if len(roles) == 0 {
		wrong("roles: empty, want the groups that give each role, such as {\"admin\": [\"ops\"], \"readonly\": [\"*\"]}; without roles, no person can sign in")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Provider{
		Name: x.Name, Title: cmp.Or(x.Title, x.Name), Issuer: x.Issuer, Roles: roles, clientID: x.ClientID, secretFile: x.ClientSecretFile, secretEnv: x.ClientSecretEnv,
		scopes: x.Scopes, groupsClaim: cmp.Or(x.GroupsClaim, "groups"), nameClaim: x.NameClaim, groupPrefix: x.GroupPrefix, parameters: x.Parameters,
		plain: issuer.Scheme == "http", client: newClient(), now: time.Now,
		busy: make(chan struct{}, exchangesAtOnce), logouts: make(chan struct{}, logoutsAtOnce),
	}, nil
}

// ownParameters are the parameters of the request for a code that the service sets itself.
var ownParameters = []string{"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method"}

func rolesOf(at string, named map[string][]string) (Roles, error) {
	var errs []error
	roles := Roles{}
	for name, groups := range named {
		role, err := access.ParseRole(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		for _, g := range groups {
			if g == "" || len(g) > people.GroupMax {
				errs = append(errs, fmt.Errorf("%s.%s: group %.100q, want 1 to %d bytes", at, name, g, people.GroupMax))
			}
		}
		if len(groups) > 0 {
			roles[role] = groups
		}
	}
	return roles, errors.Join(errs...)
}

// secret reads the client's secret; empty: the client has none.
func (p *Provider) secret() (string, error) {
	switch {
	case p.secretFile != "":
		content, err := os.ReadFile(p.secretFile)
		if err != nil {
			return "", fmt.Errorf("client secret: %w", err)
		}
		if secret := strings.TrimSpace(string(content)); secret != "" && len(secret) <= secretMax {
			return secret, nil
		}
		return "", fmt.Errorf("client secret: %s has %d bytes, want 1 to %d", p.secretFile, len(content), secretMax)
	case p.secretEnv != "":
		if secret := os.Getenv(p.secretEnv); secret != "" {
			return secret, nil
		}
		return "", fmt.Errorf("client secret: the environment variable %s is not set", p.secretEnv)
	}
	return "", nil
}
