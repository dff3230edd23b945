package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/spelling"
)

// Mistake explains why a document is not a valid policy.
type Mistake struct {
	At   string // path: Statement[1].Action[0]; empty: the document as a whole
	Text string
	byte int64 // offset in the document if it is not JSON
}

func (m *Mistake) Error() string {
	if m.At == "" {
		return m.Text
	}
	return m.At + ": " + m.Text
}

func mistake(at, format string, args ...any) error {
	return &Mistake{At: at, Text: fmt.Sprintf(format, args...)}
}

// The versions of the language. They differ in policy variables, which this one does not support.
var versions = []string{"2012-10-17", "2008-10-17"}

// networkBits is the prefix length of the networks that identify IPv6 clients, as in package clientaddress.
const networkBits = 64

// sidMax bounds a Sid, in bytes.
const sidMax = 128

// Parse compiles a document. Its error is a *Mistake. It refuses everything that it does not know, because a skipped rule would grant what it
// should deny.
func Parse(document string) (*Policy, error) {
	switch {
	case len(document) > DocumentMax:
		return nil, mistake("", "the document has %d bytes, want at most %d", len(document), DocumentMax)
	case strings.TrimSpace(document) == "":
		return nil, mistake("", "the document is empty")
	case !utf8.ValidString(document):
		return nil, mistake("", "the document is not UTF-8")
	}
	root, err := readJSON(document)
	if err != nil {
		return nil, err
	}
	if root.kind != '{' {
		return nil, mistake("", "got %s, want an object with the members Version and Statement", root.shown())
	}
	return readDocument(root)
}

func readDocument(root *node) (*Policy, error) {
	if err := root.known("Version", "Id", "Statement"); err != nil {
		return nil, err
	}
	version, ok := root.member("Version")
	if !ok {
		return nil, mistake("Version", "it is missing, want %q", versions[0])
	}
	if version.kind != '"' || !slices.Contains(versions, version.text) {
		return nil, mistake("Version", "got %s, want %q", version.shown(), versions[0])
	}
	if id, ok := root.member("Id"); ok && id.kind != '"' {
		return nil, mistake("Id", "got %s, want a string", id.shown())
	}
	statements, ok := root.member("Statement")
	if !ok {
		return nil, mistake("Statement", "it is missing, want a list of statements")
	}
	all := statements.items
	switch {
	case statements.kind == '{':
		all = []*node{statements}
	case statements.kind != '[' || len(all) == 0:
		return nil, mistake("Statement", "got %s, want a list of statements", statements.shown())
	case len(all) > StatementsMax:
		return nil, mistake("Statement", "it has %d statements, want at most %d", len(all), StatementsMax)
	}
	p := &Policy{statements: make([]statement, len(all))}
	sids := map[string]bool{}
	for i, n := range all {
		if err := readStatement(n, &p.statements[i]); err != nil {
			return nil, err
		}
		if sid := p.statements[i].sid; sid != "" {
			if sids[sid] {
				return nil, mistake(n.at+".Sid", "%q is also the Sid of another statement", sid)
			}
			sids[sid] = true
		}
	}
	return p, nil
}

func readStatement(n *node, x *statement) (err error) {
	if n.kind != '{' {
		return mistake(n.at, "got %s, want a statement: an object", n.shown())
	}
	if err := n.known("Sid", "Effect", "Action", "NotAction", "Resource", "Condition"); err != nil {
		return err
	}
	if sid, ok := n.member("Sid"); ok {
		if sid.kind != '"' || len(sid.text) > sidMax || strings.ContainsFunc(sid.text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return mistake(sid.at, "got %s, want a string of at most %d visible ASCII characters", sid.shown(), sidMax)
		}
		x.sid = sid.text
	}
	switch effect, ok := n.member("Effect"); {
	case !ok:
		return mistake(n.at+".Effect", `it is missing, want "Allow" or "Deny"`)
	case effect.kind != '"' || effect.text != "Allow" && effect.text != "Deny":
		return mistake(effect.at, `got %s, want "Allow" or "Deny"`, effect.shown())
	default:
		x.deny = effect.text == "Deny"
	}
	if x.actions, err = readActions(n); err != nil {
		return err
	}
	resource, ok := n.member("Resource")
	if !ok {
		return mistake(n.at+".Resource", `it is missing, want ARNs, or "*"`)
	}
	if x.resources, err = readResources(resource); err != nil {
		return err
	}
	if conditions, ok := n.member("Condition"); ok {
		x.conditions, err = readConditions(conditions)
	}
	return err
}

func readActions(n *node) (set actionSet, err error) {
	list, ok := n.member("Action")
	not, negated := n.member("NotAction")
	switch {
	case ok && negated:
		return set, mistake(n.at+".NotAction", "a statement has either Action or NotAction")
	case negated:
		list = not
	case !ok:
		return set, mistake(n.at+".Action", `it is missing, want names such as "gamelift:CreateFleet", or "gamelift:Describe*"`)
	}
	names, err := list.strings()
	if err != nil {
		return set, err
	}
	for _, name := range names {
		if err := addActions(&set, name); err != nil {
			return set, err
		}
	}
	if negated {
		set.complement()
	}
	return set, nil
}

// addActions adds the actions that match a name, which may end with a wildcard. As in IAM, case does not matter.
func addActions(set *actionSet, name *node) error {
	prefix, wild := strings.CutSuffix(name.text, "*")
	if strings.ContainsAny(prefix, "*?") {
		return mistake(name.at, "got %s, want one wildcard, *, at its end", name.shown())
	}
	found := false
	for a, known := range actionNames {
		if strings.EqualFold(known, name.text) || wild && len(known) >= len(prefix) && strings.EqualFold(known[:len(prefix)], prefix) {
			set.add(Action(a))
			found = true
		}
	}
	if found {
		return nil
	}
	known := actionNames[:]
	if wild {
		known = prefixes(len(prefix))
	}
	if near, ok := spelling.Nearest(name.text, known); ok {
		return mistake(name.at, "%s is not an action; did you mean %q?", name.shown(), near)
	}
	return mistake(name.at, "%s is not an action; want one of %s, such as %q, or \"*\"", name.shown(), strings.Join(services(), ", "), actionNames[0])
}

// prefixes returns the names of all actions, cut at a length and followed by a wildcard.
func prefixes(length int) (all []string) {
	for _, name := range actionNames {
		all = append(all, name[:min(length, len(name))]+"*")
	}
	return all
}

func readResources(n *node) ([]pattern, error) {
	names, err := n.strings()
	if err != nil {
		return nil, err
	}
	patterns := make([]pattern, len(names))
	for i, name := range names {
		if name.text == "*" {
			patterns[i].any = true
			continue
		}
		if err := noVariable(name); err != nil {
			return nil, err
		}
		parts := strings.SplitN(name.text, ":", arnParts)
		if len(parts) != arnParts || parts[0] != "arn" || parts[arnParts-1] == "" {
			return nil, mistake(name.at, `got %s, want an ARN of six parts, such as "arn:aws:gamelift:*:*:fleet/fleet-1234", or "*"`, name.shown())
		}
		if err := possible(name, parts); err != nil {
			return nil, err
		}
		for j, part := range parts {
			patterns[i].parts[j] = newPartPattern(part)
		}
	}
	return patterns, nil
}

// noVariable refuses IAM's policy variables. Taken literally, they would match nothing, and a denial would deny nothing.
func noVariable(n *node) error {
	if strings.Contains(n.text, "${") {
		return mistake(n.at, "got %s, but policy variables are not supported", n.shown())
	}
	return nil
}

// kinds lists how the last parts of the service API's ARNs begin. Containers and scripts exist only on AWS.
var kinds = []string{"fleet/", "alias/", "build/", "location/", "gamesessionqueue/", "matchmakingconfiguration/", "matchmakingruleset/", "gameservergroup/",
	"containerfleet/", "containergroupdefinition/", "script/"}

// possible refuses ARN patterns that no resource can match, such as one with a misspelled kind, because a denial would deny nothing.
func possible(n *node, parts []string) error {
	service, region, account, resource := parts[2], parts[3], parts[4], parts[5]
	if strings.HasPrefix(resource, "gamesession/") || strings.HasPrefix(resource, "compute/") {
		return mistake(n.at, "got %s; game sessions and computes belong to the fleet that they are in, such as \"arn:aws:gamelift:*:*:fleet/fleet-1234\"", n.shown())
	}
	roles := canBe(service, "iam") && canBe(region, "") && canBegin(resource, "role/")
	others := canBe(service, "gamelift") && region != "" && slices.ContainsFunc(kinds, func(kind string) bool { return canBegin(resource, kind) })
	if canBe(parts[1], "aws") && account != "" && (roles || others) {
		return nil
	}
	return mistake(n.at, "got %s, which no resource has; want \"arn:aws:gamelift:REGION:ACCOUNT:\" and one of %s with the rest of the name, or \"arn:aws:iam::ACCOUNT:role/NAME\"; REGION and ACCOUNT may be *",
		n.shown(), strings.Join(kinds[:8], ", "))
}

func canBe(pattern, text string) bool { return like(text, pattern) }

// canBegin reports whether some text with the given beginning matches a pattern.
func canBegin(pattern, beginning string) bool {
	if at := strings.IndexAny(pattern, "*?"); at >= 0 && at < len(beginning) {
		return strings.HasPrefix(beginning, pattern[:at])
	}
	return strings.HasPrefix(pattern, beginning)
}

func readConditions(n *node) (all []condition, err error) {
	if n.kind != '{' {
		return nil, mistake(n.at, "got %s, want an object with operators", n.shown())
	}
	for _, test := range n.members {
		at := slices.IndexFunc(operators, func(o operator) bool { return o.name == test.name })
		if at < 0 {
			return nil, mistake(test.at, "%q is not a supported operator%s", excerpt.Short(test.name), meant(test.name, operatorNames()))
		}
		if test.kind != '{' || len(test.members) == 0 {
			return nil, mistake(test.at, "got %s, want an object with keys and values", test.shown())
		}
		for _, key := range test.members {
			c := condition{operator: operators[at]}
			if err := c.read(key); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// read reads the key of a condition and its values.
func (c *condition) read(key *node) error {
	if err := c.readKey(key); err != nil {
		return err
	}
	switch {
	case c.address && c.of != sourceAddress:
		return mistake(key.at, "%s compares addresses; want the key %q", c.name, keySourceIP)
	case !c.address && c.of == sourceAddress:
		return mistake(key.at, "%s compares strings; want the operator IpAddress or NotIpAddress", c.name)
	}
	values, err := key.strings()
	if err != nil {
		return err
	}
	for _, v := range values {
		if !c.address {
			if err := noVariable(v); err != nil {
				return err
			}
			c.values = append(c.values, v.text)
			continue
		}
		p, ok := parsePrefix(v.text)
		if !ok {
			return mistake(v.at, `got %s, want an address or a range, such as "192.0.2.7" or "192.0.2.0/24"`, v.shown())
		}
		if p.Addr().Is6() && p.Bits() > networkBits { // a denial would apply to no client
			return mistake(v.at, "got %s, want at most /%d, because clients with IPv6 are known by their network of that size", v.shown(), networkBits)
		}
		c.addresses = append(c.addresses, p)
	}
	return nil
}

func (c *condition) readKey(key *node) error {
	if strings.EqualFold(key.name, keySourceIP) {
		c.of = sourceAddress
		return nil
	}
	for prefix, of := range map[string]subject{keyResourceTag: resourceTag, keyRequestTag: requestTag} {
		if len(key.name) > len(prefix) && strings.EqualFold(key.name[:len(prefix)], prefix) {
			c.of, c.tag = of, key.name[len(prefix):]
			return nil
		}
	}
	return mistake(key.at, "%q is not a supported condition key; want %s, %sKEY or %sKEY", excerpt.Short(key.name), keySourceIP, keyResourceTag, keyRequestTag)
}

func parsePrefix(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return p, false
	}
	return p.Masked(), true
}

func operatorNames() (names []string) {
	for _, o := range operators {
		names = append(names, o.name)
	}
	return names
}

// meant returns the end of an error message about an unknown name, with a suggestion.
func meant(unknown string, known []string) string {
	if near, ok := spelling.Nearest(unknown, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; want one of " + strings.Join(known, ", ")
}

// problemOf converts an error about invalid JSON to a *Mistake.
func problemOf(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Mistake{Text: fmt.Sprintf("byte %d: %s", syntax.ByteOffset, syntax.Err), byte: syntax.ByteOffset}
	}
	return mistake("", "%s", err)
}
