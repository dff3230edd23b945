// Package clientcert checks requests that backends sign with the key of a client certificate, as clients of AWS IAM Roles Anywhere do, and determines the roles that the
// settings grant to the names in certificates. It can also sign such requests.
package clientcert

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/authorities"
	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/machinerole"
)

// Bounds of the file.
const (
	authoritiesMax = 16
	groupsMax      = 8
	groupBytesMax  = 256 // of all groups of a rule together, because each session token contains them
)

// Authorities are the certificate authorities whose certificates can be exchanged for credentials.
type Authorities struct {
	byName map[string]*authority
	hosts  []string // names of this service in lower case; a request must be signed for one of them
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
	machinerole.Rule
	attributes map[string][]string
	groups     []string
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
	machinerole.Text
	Attributes map[string][]string `json:"attributes"`
	Groups     []string            `json:"groups"`
}

// nameKind is the kind of name that identifies the holder of a certificate.
type nameKind string

const (
	commonName nameKind = "commonName"
	dnsName    nameKind = "dns"
	uriName    nameKind = "uri"
	emailName  nameKind = "email"
)

// Check reads the file and reports all mistakes in it. It returns the names of the authorities.
func Check(path string) (names []string, err error) {
	x, err := configfile.Read(path, parse)
	if err != nil {
		return nil, err
	}
	for name := range x.byName {
		names = append(names, name)
	}
	return names, nil
}

// Open reads the file and the certificates of the authorities, which it reads again after changes.
func Open(path string, log *slog.Logger) (*Authorities, error) {
	x, err := configfile.Read(path, parse)
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

func parse(content []byte) (*Authorities, error) {
	var t text
	if err := configfile.Decode(content, &t); err != nil {
		return nil, err
	}
	var wrong configfile.Mistakes
	x := &Authorities{byName: map[string]*authority{}, now: time.Now}
	wrong.List("hosts", t.Hosts)
	for n, host := range t.Hosts {
		if strings.ContainsAny(host, "/@*") || strings.Count(host, ":") == 1 {
			wrong.Add(fmt.Sprintf("hosts[%d]", n), "%.200q, want the name or address of this service without scheme and port, such as muster.example.com", host)
		}
		x.hosts = append(x.hosts, strings.ToLower(strings.Trim(host, "[]")))
	}
	if len(t.Authorities) == 0 || len(t.Authorities) > authoritiesMax {
		wrong.Add("authorities", "%d, want 1 to %d", len(t.Authorities), authoritiesMax)
	}
	for n := range t.Authorities {
		at := fmt.Sprintf("authorities[%d]", n)
		a := t.Authorities[n].authority(at, &wrong)
		if x.byName[a.name] != nil {
			wrong.Add(at+".name", "%q is the name of another authority", a.name)
		}
		x.byName[a.name] = a
	}
	return x, wrong.Err()
}

func (t *authorityText) authority(at string, wrong *configfile.Mistakes) *authority {
	if !configfile.IsName(t.Name) || t.Name == "sha256" {
		wrong.Add(at+".name", "%.200q, want 1 to 32 lower-case letters, digits and hyphens, and not sha256", t.Name)
	}
	a := &authority{name: t.Name, caFile: t.CAFile, kind: nameKind(t.Subject)}
	switch a.kind {
	case "":
		a.kind = commonName
	case commonName, dnsName, uriName, emailName:
	default:
		wrong.Add(at+".subject", "%.200q, want commonName, dns, uri or email", t.Subject)
	}
	if err := checkAuthorities(t.CAFile); err != nil {
		wrong.Add(at+".caFile", "%w", err)
	}
	if len(t.Rules) == 0 || len(t.Rules) > machinerole.RulesMax {
		wrong.Add(at+".rules", "%d, want 1 to %d", len(t.Rules), machinerole.RulesMax)
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
	_, err := authorities.Read(path)
	return err
}

func (t *ruleText) rule(at string, wrong *configfile.Mistakes) rule {
	r := rule{Rule: t.Text.Rule(at, wrong), attributes: t.Attributes, groups: t.Groups}
	for n, pattern := range t.Subjects {
		if strings.Trim(pattern, "*") == "" && len(t.Attributes) == 0 {
			wrong.Add(fmt.Sprintf("%s.subjects[%d]", at, n), "%.200q matches every certificate of the authority: want a beginning or an end, such as lobby-* or *.backend.example.com, or attributes beside it", pattern)
		}
	}
	for name, values := range t.Attributes {
		if attributeOf[name] == nil {
			wrong.Add(at+".attributes", "%.200q, want O or OU", name)
		}
		wrong.List(at+".attributes."+name, values)
	}
	if len(t.Groups) > 0 {
		wrong.List(at+".groups", t.Groups)
	}
	if len(t.Groups) > groupsMax || len(strings.Join(t.Groups, "")) > groupBytesMax {
		wrong.Add(at+".groups", "%d with %d bytes, want at most %d with %d bytes", len(t.Groups), len(strings.Join(t.Groups, "")), groupsMax, groupBytesMax)
	}
	return r
}
