// Package webidentity checks tokens with which machines prove who they are, such as service accounts of Kubernetes and jobs of CI systems, and knows which roles the
// settings give them.
package webidentity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// Bounds of the file.
const (
	fileBytesMax  = 1 << 20
	issuersMax    = 16
	rulesMax      = 256 // of one issuer
	valuesMax     = 64  // of each list
	valueBytesMax = 512
	lifeLeast     = 15 * time.Minute
	lifeMost      = 12 * time.Hour
	lifeDefault   = time.Hour
)

// Issuers are those whose tokens are taken.
type Issuers struct {
	byURL map[string]*issuer
	now   func() time.Time
}

type issuer struct {
	name, url string
	audiences []string
	rules     []rule
	keysFile  string
	provider  *tokenkeys.Provider // nil: the keys are in the file
	file      *tokenkeys.File
}

type rule struct {
	subjects []string
	claims   map[string][]string
	roles    access.RoleSet
	life     time.Duration // of credentials, at most
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
	Subjects    []string            `json:"subjects"`
	Claims      map[string][]string `json:"claims"`
	Roles       []string            `json:"roles"`
	MaxDuration string              `json:"maxDuration"`
}

// Check reads the file, and reports all of its mistakes. It returns the names of the issuers.
func Check(path string) (names []string, err error) {
	x, err := read(path)
	if err != nil {
		return nil, err
	}
	for _, i := range x.byURL {
		names = append(names, i.name)
	}
	return names, nil
}

// Open reads the file, and the files of keys that it names.
func Open(path string, log *slog.Logger) (*Issuers, error) {
	x, err := read(path)
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

func read(path string) (*Issuers, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), fileBytesMax)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// mistakes are all those of a file, each with the place of the value.
type mistakes []error

func (m *mistakes) add(at, format string, args ...any) {
	*m = append(*m, fmt.Errorf(at+": "+format, args...))
}

func parse(content []byte) (*Issuers, error) {
	var t text
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("want nothing after the object")
	}
	var wrong mistakes
	if len(t.Issuers) == 0 || len(t.Issuers) > issuersMax {
		wrong.add("issuers", "%d, want 1 to %d", len(t.Issuers), issuersMax)
	}
	x, names := &Issuers{byURL: map[string]*issuer{}, now: time.Now}, map[string]bool{}
	for n := range t.Issuers {
		at := fmt.Sprintf("issuers[%d]", n)
		i := t.Issuers[n].issuer(at, &wrong)
		if names[i.name] {
			wrong.add(at+".name", "%q is the name of another one", i.name)
		}
		if x.byURL[i.url] != nil {
			wrong.add(at+".issuer", "%q is that of %s, too: want one entry with the rules of both", i.url, x.byURL[i.url].name)
		}
		names[i.name], x.byURL[i.url] = true, i
	}
	return x, errors.Join(wrong...)
}

// nameForm is that of an issuer's name, which begins the names of its subjects.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func (t *issuerText) issuer(at string, wrong *mistakes) *issuer {
	if !nameForm.MatchString(t.Name) {
		wrong.add(at+".name", "%.200q, want 1 to 32 lower-case letters, digits and hyphens", t.Name)
	}
	u, err := url.Parse(t.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || !tokenkeys.Private(u) && t.KeysFile == "" {
		wrong.add(at+".issuer", "%.200q, want an https URL without a query, exactly as tokens have it in iss", t.Issuer)
	}
	checkList(at+".audiences", t.Audiences, wrong)
	if t.KeysFile != "" && t.CAFile != "" {
		wrong.add(at+".caFile", "%q: want none beside keysFile, with which nothing is fetched", t.CAFile)
	}
	i := &issuer{name: t.Name, url: t.Issuer, audiences: t.Audiences, keysFile: t.KeysFile}
	if t.KeysFile == "" {
		transport, err := transport(t.CAFile)
		if err != nil {
			wrong.add(at+".caFile", "%w", err)
		}
		i.provider = tokenkeys.NewProvider(tokenkeys.ProviderConfig{Issuer: t.Issuer, Client: tokenkeys.NewClient(transport)})
	}
	if len(t.Rules) == 0 || len(t.Rules) > rulesMax {
		wrong.add(at+".rules", "%d, want 1 to %d", len(t.Rules), rulesMax)
	}
	for n := range t.Rules {
		i.rules = append(i.rules, t.Rules[n].rule(fmt.Sprintf("%s.rules[%d]", at, n), wrong))
	}
	return i
}

// transport trusts the authorities in a file; without one, those of the machine.
func transport(caFile string) (http.RoundTripper, error) {
	if caFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate, want some in PEM", caFile)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool}
	return t, nil
}

func (t *ruleText) rule(at string, wrong *mistakes) rule {
	r := rule{subjects: t.Subjects, claims: t.Claims, life: lifeDefault}
	checkList(at+".subjects", t.Subjects, wrong)
	for n, pattern := range t.Subjects {
		if strings.HasPrefix(pattern, "*") && len(t.Claims) == 0 {
			wrong.add(fmt.Sprintf("%s.subjects[%d]", at, n), "%.200q stands for everybody of the issuer: want a beginning, such as repo:studio/game:*, or claims beside it", pattern)
		}
	}
	if len(t.Claims) > valuesMax {
		wrong.add(at+".claims", "%d, want at most %d", len(t.Claims), valuesMax)
	}
	for name, values := range t.Claims {
		checkList(at+".claims."+name, values, wrong)
	}
	checkList(at+".roles", t.Roles, wrong)
	for n, name := range t.Roles {
		role, err := access.ParseRole(name)
		if err != nil {
			wrong.add(fmt.Sprintf("%s.roles[%d]", at, n), "%w", err)
			continue
		}
		r.roles |= access.Roles(role)
	}
	if t.MaxDuration != "" {
		life, err := time.ParseDuration(t.MaxDuration)
		if err != nil || life < lifeLeast || life > lifeMost {
			wrong.add(at+".maxDuration", "%q, want %v to %v", t.MaxDuration, lifeLeast, lifeMost)
		}
		r.life = life
	}
	return r
}

func checkList(at string, values []string, wrong *mistakes) {
	if len(values) == 0 || len(values) > valuesMax {
		wrong.add(at, "%d, want 1 to %d", len(values), valuesMax)
	}
	for n, value := range values {
		if value == "" || len(value) > valueBytesMax {
			wrong.add(fmt.Sprintf("%s[%d]", at, n), "%d bytes, want 1 to %d", len(value), valueBytesMax)
		}
		if slices.Contains(values[:n], value) {
			wrong.add(fmt.Sprintf("%s[%d]", at, n), "%.200q is there twice", value)
		}
	}
}
