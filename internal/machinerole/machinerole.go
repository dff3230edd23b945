// Package machinerole has what the rules of client certificates and of web identities have in common: which roles they give to a machine by its name.
package machinerole

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/domain/access"
)

// RulesMax is how many rules an authority or an issuer may have.
const RulesMax = 256

const (
	lifeLeast   = 15 * time.Minute
	lifeMost    = 12 * time.Hour
	lifeDefault = time.Hour
)

// Text is the form of a rule in a file.
type Text struct {
	Subjects    []string `json:"subjects"`
	Roles       []string `json:"roles"`
	MaxDuration string   `json:"maxDuration"`
}

// Rule gives roles to the machines that a pattern names.
type Rule struct {
	subjects []string
	Roles    access.RoleSet
	Life     time.Duration // of credentials, at most
}

// Rule reads a rule, and notes its mistakes.
func (t *Text) Rule(at string, wrong *configfile.Mistakes) Rule {
	r := Rule{subjects: t.Subjects, Life: lifeDefault}
	wrong.List(at+".subjects", t.Subjects)
	wrong.List(at+".roles", t.Roles)
	for n, name := range t.Roles {
		role, err := access.ParseRole(name)
		if err != nil {
			wrong.Add(fmt.Sprintf("%s.roles[%d]", at, n), "%w", err)
			continue
		}
		r.Roles |= access.Roles(role)
	}
	if t.MaxDuration != "" {
		life, err := time.ParseDuration(t.MaxDuration)
		if err != nil || life < lifeLeast || life > lifeMost {
			wrong.Add(at+".maxDuration", "%q, want %v to %v", t.MaxDuration, lifeLeast, lifeMost)
		}
		r.Life = life
	}
	return r
}

// Names reports whether a pattern of the rule matches a machine's name.
func (r *Rule) Names(subject string) bool {
	return slices.ContainsFunc(r.subjects, func(pattern string) bool { return like(subject, pattern) })
}

// like reports whether text matches a pattern, in which * stands for any text. Everything else stands for itself.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(text, part) // the first place leaves the most for the parts behind it
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, parts[last])
}
