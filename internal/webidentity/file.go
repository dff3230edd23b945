// Package webidentity checks tokens with which machines prove their identity, such as service accounts of Kubernetes and jobs of CI systems, and determines the roles that
// the settings grant them.
package webidentity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/authorities"
	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/machinerole"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// Bounds of the file.
const (
	issuersMax = 16
	claimsMax  = 64 // of a rule
)

// Issuers are the issuers whose tokens are accepted.
type Issuers struct {
	byURL map[string]*issuer
	now   func() time.Time
}

type issuer struct {
	name, url string
	audiences []string
	rules     []rule
	keysFile  string
	trusted   *x509.CertPool      // for requests to the provider; nil: the authorities of the machine
	provider  *tokenkeys.Provider // nil: the keys are in the file
	file      *tokenkeys.File
}

type rule struct {
	machinerole.Rule
	claims map[string][]string
}

// text is the form of the file.
type text struct {
	Issuers []issuerText `json:"issuers"`
}

type issuerText struct {
	Name      string     `json:"name"`
	Issuer    string     `json:"issuer"`
	Audiences []string   `json:"audiences"`
	KeysFile  string     `json:"keysFile"`
	CAFile    string     `json:"caFile"`
	Rules     []ruleText `json:"rules"`
}

type ruleText struct {
	machinerole.Text
	Claims map[string][]string `json:"claims"`
}

// Check reads the file and reports all mistakes in it. It returns the names of the issuers.
func Check(path string) (names []string, err error) {
	x, err := configfile.Read(path, parse)
	if err != nil {
		return nil, err
	}
	for _, i := range x.byURL {
		names = append(names, i.name)
	}
	return names, nil
}

// Open reads the file and the key files that it names.
func Open(path string, log *slog.Logger) (*Issuers, error) {
	x, err := configfile.Read(path, parse)
	if err != nil {
		return nil, err
	}
	for _, i := range x.byURL {
		if i.keysFile == "" {
			continue
		}
		if i.file, err = tokenkeys.OpenFile(i.keysFile, "keys of issuer "+i.name, log); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// KeepKeys takes over the keys that were fetched before, for issuers from which they are still fetched in the same way: an issuer may be down. before may be nil.
func (x *Issuers) KeepKeys(before *Issuers) {
	if before == nil {
		return
	}
	for url, i := range x.byURL {
		if was := before.byURL[url]; was != nil && was.provider != nil && i.provider != nil && was.trusted.Equal(i.trusted) {
			i.provider = was.provider
		}
	}
}

func parse(content []byte) (*Issuers, error) {
	var t text
	if err := configfile.Decode(content, &t); err != nil {
		return nil, err
	}
	var wrong configfile.Mistakes
	if len(t.Issuers) == 0 || len(t.Issuers) > issuersMax {
		wrong.Add("issuers", "%d, want 1 to %d", len(t.Issuers), issuersMax)
	}
	x, names := &Issuers{byURL: map[string]*issuer{}, now: time.Now}, map[string]bool{}
	for n := range t.Issuers {
		at := fmt.Sprintf("issuers[%d]", n)
		i := t.Issuers[n].issuer(at, &wrong)
		if names[i.name] {
			wrong.Add(at+".name", "%q is the name of another issuer", i.name)
		}
		if x.byURL[i.url] != nil {
			wrong.Add(at+".issuer", "%q is also the issuer of %s: want one entry with the rules of both", i.url, x.byURL[i.url].name)
		}
		names[i.name], x.byURL[i.url] = true, i
	}
	return x, wrong.Err()
}

func (t *issuerText) issuer(at string, wrong *configfile.Mistakes) *issuer {
	if !configfile.IsName(t.Name) {
		wrong.Add(at+".name", "%.200q, want 1 to 32 lower-case letters, digits and hyphens", t.Name)
	}
	u, err := url.Parse(t.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || !tokenkeys.Private(u) && t.KeysFile == "" {
		wrong.Add(at+".issuer", "%.200q, want an https URL without a query, exactly as tokens have it in iss", t.Issuer)
	}
	wrong.List(at+".audiences", t.Audiences)
	if t.KeysFile != "" && t.CAFile != "" {
		wrong.Add(at+".caFile", "%q: want none beside keysFile, with which nothing is fetched", t.CAFile)
	}
	i := &issuer{name: t.Name, url: t.Issuer, audiences: t.Audiences, keysFile: t.KeysFile}
	if t.KeysFile == "" {
		transport, err := i.transport(t.CAFile)
		if err != nil {
			wrong.Add(at+".caFile", "%w", err)
		}
		i.provider = tokenkeys.NewProvider(tokenkeys.ProviderConfig{Issuer: t.Issuer, Client: tokenkeys.NewClient(transport)})
	}
	if len(t.Rules) == 0 || len(t.Rules) > machinerole.RulesMax {
		wrong.Add(at+".rules", "%d, want 1 to %d", len(t.Rules), machinerole.RulesMax)
	}
	for n := range t.Rules {
		i.rules = append(i.rules, t.Rules[n].rule(fmt.Sprintf("%s.rules[%d]", at, n), wrong))
	}
	return i
}

// transport returns a transport that trusts the authorities in a file; nil without a file, for those of the machine.
func (i *issuer) transport(caFile string) (t *http.Transport, err error) {
	if caFile == "" {
		return nil, nil
	}
	if i.trusted, err = authorities.Read(caFile); err != nil {
		return nil, err
	}
	t = http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: i.trusted}
	return t, nil
}

func (t *ruleText) rule(at string, wrong *configfile.Mistakes) rule {
	r := rule{Rule: t.Text.Rule(at, wrong), claims: t.Claims}
	for n, pattern := range t.Subjects {
		if strings.HasPrefix(pattern, "*") && len(t.Claims) == 0 {
			wrong.Add(fmt.Sprintf("%s.subjects[%d]", at, n), "%.200q matches every subject of the issuer: want a beginning, such as repo:studio/game:*, or claims beside it", pattern)
		}
	}
	if len(t.Claims) > claimsMax {
		wrong.Add(at+".claims", "%d, want at most %d", len(t.Claims), claimsMax)
	}
	for name, values := range t.Claims {
		wrong.List(at+".claims."+name, values)
	}
	return r
}
