// Package clientcert checks requests that backends sign with the key of a client certificate, as clients of AWS IAM Roles Anywhere do, and knows which roles the settings
// give to the names in certificates. It signs such requests, too.
package clientcert

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/listen"
)

// Bounds of the file.
const (
	fileBytesMax   = 1 << 20
	authoritiesMax = 16
	rulesMax       = 256 // of one authority
	valuesMax      = 64  // of each list
	valueBytesMax  = 512
	groupsMax      = 8
	groupBytesMax  = 256 // of all groups of a rule, which are in each session token
	lifeLeast      = 15 * time.Minute
	lifeMost       = 12 * time.Hour
	lifeDefault    = time.Hour
)

// Authorities are those whose certificates give credentials.
type Authorities struct {
	byName map[string]*authority
	hosts  []string // names of this service in lower case, one of which a request is signed for
	now    func() time.Time
}

type authority struct {
	name   string
	caFile string
	roots  *listen.FileAuthorities
	kind   nameKind
	rules  []rule
}

type rule struct {
	subjects   []string
	attributes map[string][]string
	roles      access.RoleSet
	groups     []string
	life       time.Duration // of credentials, at most
}

// text is the form of the file.
type text struct {
	Hosts       []string        `json:"hosts"`
	Authorities []authorityText `json:"authorities"`
}

type authorityText struct {
	Name    string     `json:"name"`
	CAFile  string     `json:"caFile"`
	Subject string     `json:"subject"`
	Rules   []ruleText `json:"rules"`
}

type ruleText struct {
	Subjects    []string            `json:"subjects"`
	Attributes  map[string][]string `json:"attributes"`
	Roles       []string            `json:"roles"`
	Groups      []string            `json:"groups"`
	MaxDuration string              `json:"maxDuration"`
}

// nameKind is the kind of name that says who the holder of a certificate is.
type nameKind string

const (
	commonName nameKind = "commonName"
	dnsName    nameKind = "dns"
	uriName    nameKind = "uri"
	emailName  nameKind = "email"
)

// Check reads the file, and reports all of its mistakes. It returns the names of the authorities.
func Check(path string) (names []string, err error) {
	x, err := read(path)
	if err != nil {
		return nil, err
	}
	for name := range x.byName {
		names = append(names, name)
	}
	return names, nil
}

// Open reads the file, and the certificates of the authorities, which are read again after changes.
func Open(path string, log *slog.Logger) (*Authorities, error) {
	x, err := read(path)
	if err != nil {
		return nil, err
	}
	for _, a := range x.byName {
		if a.roots, err = listen.LoadAuthorities(a.caFile, log); err != nil {
			return nil, fmt.Errorf("authority %s: %w", a.name, err)
		}
	}
	return x, nil
}

func read(path string) (*Authorities, error) {
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

func parse(content []byte) (*Authorities, error) {
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
	x := &Authorities{byName: map[string]*authority{}, now: time.Now}
	checkList("hosts", t.Hosts, &wrong)
	for n, host := range t.Hosts {
		if strings.ContainsAny(host, "/@*") || strings.Count(host, ":") == 1 {
			wrong.add(fmt.Sprintf("hosts[%d]", n), "%.200q, want the name or address of this service without scheme and port, such as muster.example.com", host)
		}
		x.hosts = append(x.hosts, strings.ToLower(strings.Trim(host, "[]")))
	}
	if len(t.Authorities) == 0 || len(t.Authorities) > authoritiesMax {
		wrong.add("authorities", "%d, want 1 to %d", len(t.Authorities), authoritiesMax)
	}
	for n := range t.Authorities {
		at := fmt.Sprintf("authorities[%d]", n)
		a := t.Authorities[n].authority(at, &wrong)
		if x.byName[a.name] != nil {
			wrong.add(at+".name", "%q is the name of another one", a.name)
		}
		x.byName[a.name] = a
	}
	return x, errors.Join(wrong...)
}

// nameForm is that of an authority's name, which begins the names of the holders of its certificates.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func (t *authorityText) authority(at string, wrong *mistakes) *authority {
	if !nameForm.MatchString(t.Name) || t.Name == "sha256" {
		wrong.add(at+".name", "%.200q, want 1 to 32 lower-case letters, digits and hyphens, and not sha256", t.Name)
	}
	a := &authority{name: t.Name, caFile: t.CAFile, kind: nameKind(t.Subject)}
	switch a.kind {
	case "":
		a.kind = commonName
	case commonName, dnsName, uriName, emailName:
	default:
		wrong.add(at+".subject", "%.200q, want commonName, dns, uri or email", t.Subject)
	}
	if err := checkAuthorities(t.CAFile); err != nil {
		wrong.add(at+".caFile", "%w", err)
	}
	if len(t.Rules) == 0 || len(t.Rules) > rulesMax {
		wrong.add(at+".rules", "%d, want 1 to %d", len(t.Rules), rulesMax)
	}
	for n := range t.Rules {
		a.rules = append(a.rules, t.Rules[n].rule(fmt.Sprintf("%s.rules[%d]", at, n), wrong))
	}
	return a
}

func checkAuthorities(path string) error {
	if path == "" {
		return errors.New("is empty, want a file with the certificates of the authority in PEM")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return fmt.Errorf("%s has no certificate, want some in PEM", path)
	}
	return nil
}

func (t *ruleText) rule(at string, wrong *mistakes) rule {
	r := rule{subjects: t.Subjects, attributes: t.Attributes, groups: t.Groups, life: lifeDefault}
	checkList(at+".subjects", t.Subjects, wrong)
	for n, pattern := range t.Subjects {
		if strings.Trim(pattern, "*") == "" && len(t.Attributes) == 0 {
			wrong.add(fmt.Sprintf("%s.subjects[%d]", at, n), "%.200q stands for every certificate of the authority: want a beginning or an end, such as lobby-* or *.backend.example.com, or attributes beside it", pattern)
		}
	}
	for name, values := range t.Attributes {
		if attributeOf[name] == nil {
			wrong.add(at+".attributes", "%.200q, want O or OU", name)
		}
		checkList(at+".attributes."+name, values, wrong)
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
	if len(t.Groups) > 0 {
		checkList(at+".groups", t.Groups, wrong)
	}
	if len(t.Groups) > groupsMax || len(strings.Join(t.Groups, "")) > groupBytesMax {
		wrong.add(at+".groups", "%d with %d bytes, want at most %d with %d bytes", len(t.Groups), len(strings.Join(t.Groups, "")), groupsMax, groupBytesMax)
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
