package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/keyvalue"
)

const (
	fleetA = "arn:aws:gamelift:us-east-1:000000000000:fleet/fleet-a"
	fleetB = "arn:aws:gamelift:us-east-1:000000000000:fleet/fleet-b"
)

// document returns a policy with these statements.
func document(statements ...string) string {
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

func parsed(t testing.TB, statements ...string) *Policy {
	t.Helper()
	p, err := Parse(document(statements...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecide(t *testing.T) {
	allowAll := `{"Effect":"Allow","Action":"*","Resource":"*"}`
	tags := func(pairs ...string) (all []keyvalue.Pair) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, keyvalue.Pair{Key: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	on := func(condition string) string {
		return `{"Effect":"Allow","Action":"gamelift:*","Resource":"*","Condition":` + condition + `}`
	}
	type q = Request
	for name, x := range map[string]struct {
		statements []string
		request    q
		action     string // if not gamelift:UpdateFleetCapacity
		want       string
	}{
		"nothing allows":              {[]string{`{"Effect":"Allow","Action":"gamelift:ListFleets","Resource":"*"}`}, q{Resource: fleetA}, "", "no"},
		"by name":                     {[]string{`{"Effect":"Allow","Action":["gamelift:ListFleets","gamelift:UpdateFleetCapacity"],"Resource":"*"}`}, q{Resource: fleetA}, "", "yes 1"},
		"by name in another case":     {[]string{`{"Effect":"Allow","Action":"GameLift:updatefleetcapacity","Resource":"*"}`}, q{Resource: fleetA}, "", "yes 1"},
		"by prefix":                   {[]string{`{"Effect":"Allow","Action":"gamelift:Update*","Resource":"*"}`}, q{Resource: fleetA}, "", "yes 1"},
		"by another prefix":           {[]string{`{"Effect":"Allow","Action":"gamelift:Describe*","Resource":"*"}`}, q{Resource: fleetA}, "", "no"},
		"another service":             {[]string{`{"Effect":"Allow","Action":"muster:*","Resource":"*"}`}, q{Resource: fleetA}, "", "no"},
		"not an action":               {[]string{`{"Effect":"Allow","NotAction":"gamelift:Delete*","Resource":"*"}`}, q{Resource: fleetA}, "", "yes 1"},
		"not this action":             {[]string{`{"Effect":"Allow","NotAction":"gamelift:Update*","Resource":"*"}`}, q{Resource: fleetA}, "", "no"},
		"a denial counts more":        {[]string{allowAll, `{"Effect":"Deny","Action":"gamelift:Update*","Resource":"` + fleetA + `"}`}, q{Resource: fleetA}, "", "denied 2"},
		"a denial in front":           {[]string{`{"Effect":"Deny","Action":"gamelift:Update*","Resource":"` + fleetA + `"}`, allowAll}, q{Resource: fleetA}, "", "denied 1"},
		"a denial of another fleet":   {[]string{allowAll, `{"Effect":"Deny","Action":"*","Resource":"` + fleetA + `"}`}, q{Resource: fleetB}, "", "yes 1"},
		"one fleet":                   {[]string{`{"Effect":"Allow","Action":"*","Resource":"` + fleetA + `"}`}, q{Resource: fleetA}, "", "yes 1"},
		"one fleet and another":       {[]string{`{"Effect":"Allow","Action":"*","Resource":"` + fleetA + `"}`}, q{Resource: fleetB}, "", "no"},
		"one fleet and a list":        {[]string{`{"Effect":"Allow","Action":"*","Resource":"` + fleetA + `"}`}, q{Resource: AnyResource}, "gamelift:ListFleets", "no"},
		"all fleets and a list":       {[]string{`{"Effect":"Allow","Action":"*","Resource":"arn:*:*:*:*:*"}`}, q{Resource: AnyResource}, "gamelift:ListFleets", "no"},
		"everything and a list":       {[]string{allowAll}, q{Resource: AnyResource}, "gamelift:ListFleets", "yes 1"},
		"any region":                  {[]string{`{"Effect":"Allow","Action":"*","Resource":"arn:aws:gamelift:*:*:fleet/fleet-?"}`}, q{Resource: fleetB}, "", "yes 1"},
		"a wildcard ends at a colon":  {[]string{`{"Effect":"Allow","Action":"*","Resource":"arn:aws:gamelift:us*000000000000:*:fleet/fleet-a"}`}, q{Resource: fleetA}, "", "no"},
		"the last part has colons":    {[]string{`{"Effect":"Allow","Action":"*","Resource":"arn:aws:gamelift:*:*:fleet/*:b"}`}, q{Resource: fleetA + ":b"}, "", "yes 1"},
		"a tag":                       {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":["test","dev"]}}`)}, q{Resource: fleetA, ResourceTags: tags("a", "b", "env", "dev")}, "", "yes 1"},
		"another value":               {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":["test","dev"]}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "prod")}, "", "no"},
		"case of values matters":      {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":"dev"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "Dev")}, "", "no"},
		"no tag":                      {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":"dev"}}`)}, q{Resource: fleetA}, "", "no"},
		"equality has no wildcards":   {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":"d*"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev")}, "", "no"},
		"likeness has":                {[]string{on(`{"StringLike":{"aws:ResourceTag/env":"d?v*"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev-1")}, "", "yes 1"},
		"not equal":                   {[]string{on(`{"StringNotEquals":{"aws:ResourceTag/env":["prod","live"]}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev")}, "", "yes 1"},
		"not not equal":               {[]string{on(`{"StringNotEquals":{"aws:ResourceTag/env":["prod","live"]}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "live")}, "", "no"},
		"not equal without a tag":     {[]string{on(`{"StringNotEquals":{"aws:ResourceTag/env":"prod"}}`)}, q{Resource: fleetA}, "", "yes 1"},
		"not like":                    {[]string{on(`{"StringNotLike":{"aws:ResourceTag/env":"prod-*"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "prod-eu")}, "", "no"},
		"a tag of the request":        {[]string{on(`{"StringEquals":{"aws:RequestTag/env":"dev"}}`)}, q{Resource: fleetA, RequestTags: tags("env", "dev")}, "", "yes 1"},
		"a tag of the wrong kind":     {[]string{on(`{"StringEquals":{"aws:RequestTag/env":"dev"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev")}, "", "no"},
		"an address":                  {[]string{on(`{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","2001:db8::/32"]}}`)}, q{Resource: fleetA, Source: Address("::ffff:10.1.2.3")}, "", "yes 1"},
		"an address of version 6":     {[]string{on(`{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","2001:db8::/32"]}}`)}, q{Resource: fleetA, Source: Address("2001:db8::7%eth0")}, "", "yes 1"},
		"a network of version 6":      {[]string{on(`{"IpAddress":{"aws:SourceIp":["2001:db8:0:1::/64"]}}`)}, q{Resource: fleetA, Source: Address("2001:db8:0:1::/64")}, "", "yes 1"},
		"another address":             {[]string{on(`{"IpAddress":{"aws:sourceip":"10.0.0.1"}}`)}, q{Resource: fleetA, Source: Address("10.0.0.2")}, "", "no"},
		"no address":                  {[]string{on(`{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}`)}, q{Resource: fleetA}, "", "no"},
		"not an address":              {[]string{on(`{"NotIpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`)}, q{Resource: fleetA, Source: Address("192.0.2.1")}, "", "yes 1"},
		"not an address, unknown":     {[]string{allowAll, `{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"NotIpAddress":{"aws:SourceIp":"10.0.0.0/8"}}}`}, q{Resource: fleetA}, "", "denied 2"},
		"all conditions together":     {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":"dev","aws:ResourceTag/team":"a"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev", "team", "b")}, "", "no"},
		"all operators together":      {[]string{on(`{"StringEquals":{"aws:ResourceTag/env":"dev"},"IpAddress":{"aws:SourceIp":"10.0.0.1"}}`)}, q{Resource: fleetA, ResourceTags: tags("env", "dev")}, "", "no"},
		"a statement without a list":  {[]string{`{"Sid":"One","Effect":"Allow","Action":"gamelift:UpdateFleetCapacity","Resource":["arn:aws:gamelift:*:*:fleet/fleet-a"]}`}, q{Resource: fleetA}, "", "yes 1"},
		"a deny of all but one fleet": {[]string{allowAll, `{"Effect":"Deny","NotAction":"gamelift:List*","Resource":"*"}`}, q{Resource: fleetA}, "", "denied 2"},
	} {
		if x.request.Action = MustBe("gamelift:UpdateFleetCapacity"); x.action != "" {
			x.request.Action = MustBe(x.action)
		}
		set := NewSet([]Named{{"p", parsed(t, x.statements...)}})
		d := set.Decide(&x.request)
		got := "no"
		if d.Allowed {
			got = fmt.Sprint("yes ", d.By.Number+1)
		} else if d.Denied {
			got = fmt.Sprint("denied ", d.By.Number+1)
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// A denial applies in whatever policy it is, and a policy that this program cannot read denies everything.
func TestSet(t *testing.T) {
	allow := Named{"allow", parsed(t, `{"Effect":"Allow","Action":"*","Resource":"*"}`)}
	deny := Named{"deny", parsed(t, `{"Sid":"NoFleets","Effect":"Deny","Action":"gamelift:*","Resource":"arn:aws:gamelift:*:*:fleet/*"}`)}
	q := &Request{Action: MustBe("gamelift:DeleteFleet"), Resource: fleetA}
	for _, set := range [][]Named{{allow, deny}, {deny, allow}} {
		d := NewSet(set).Decide(q)
		if !d.Denied || d.Allowed || d.By.String() != `statement "NoFleets" of policy deny` {
			t.Errorf("%+v", d)
		}
	}
	if d := NewSet([]Named{allow, {"unread", nil}}).Decide(q); d.Allowed || !d.Denied || d.By.Policy != "unread" {
		t.Errorf("unreadable: %+v", d)
	}
	if d := new(Set).Decide(q); d.Allowed || d.Denied {
		t.Errorf("no policies: %+v", d)
	}
}

func TestMistakes(t *testing.T) {
	allow := func(rest string) string { return document(`{"Effect":"Allow",` + rest + `}`) }
	const resource = `"Resource":"*"`
	for text, want := range map[string]string{
		``:                                 `the document is empty`,
		`{`:                                `byte 1: unexpected EOF`,
		`{} {}`:                            `byte 4: want nothing after the document`,
		`{"Version":1,"Version":2}`:        `byte 13: duplicate object member name`,
		`[]`:                               `got an empty list, want an object with the members Version and Statement`,
		"{\"\xff\":1}":                     `the document is not UTF-8`,
		strings.Repeat(" ", DocumentMax+1): `the document has 10241 bytes, want at most 10240`,
		strings.Repeat("[", 100):           `[0][0][0][0][0][0][0][0]: it is nested more than 8 deep`,
		`{"Statement":[]}`:                 `Version: it is missing, want "2012-10-17"`,
		`{"Version":"2012-10-18","Statement":[]}`:  `Version: got "2012-10-18", want "2012-10-17"`,
		`{"Version":"2012-10-17"}`:                 `Statement: it is missing, want a list of statements`,
		`{"Version":"2012-10-17","Statement":[]}`:  `Statement: got an empty list, want a list of statements`,
		`{"Version":"2012-10-17","Statements":[]}`: `Statements: "Statements" is unknown; did you mean "Statement"?`,
		document(`7`):                                                                 `Statement[0]: got 7, want a statement: an object`,
		document(`{}`):                                                                `Statement[0].Effect: it is missing, want "Allow" or "Deny"`,
		document(`{"Effect":"allow"}`):                                                `Statement[0].Effect: got "allow", want "Allow" or "Deny"`,
		document(`{"Effect":"Allow"}`):                                                `Statement[0].Action: it is missing, want names such as "gamelift:CreateFleet", or "gamelift:Describe*"`,
		allow(`"Principal":"*"`):                                                      `Statement[0].Principal: "Principal" is unknown; want one of Sid, Effect, Action, NotAction, Resource, Condition`,
		allow(`"NotResource":"*"`):                                                    `Statement[0].NotResource: "NotResource" is unknown; did you mean "Resource"?`,
		allow(`"Sid":"a b"`):                                                          `Statement[0].Sid: got "a b", want a string of at most 128 visible ASCII characters`,
		allow(`"Action":"*"`):                                                         `Statement[0].Resource: it is missing, want ARNs, or "*"`,
		allow(`"Action":"*","NotAction":"*"`):                                         `Statement[0].NotAction: a statement has either Action or NotAction`,
		allow(`"Action":[],` + resource):                                              `Statement[0].Action: got an empty list, want a string, or a list of strings`,
		allow(`"Action":["*",7],` + resource):                                         `Statement[0].Action[1]: got 7, want a string`,
		allow(`"Action":"gamelift:CreateFlet",` + resource):                           `Statement[0].Action: "gamelift:CreateFlet" is not an action; did you mean "gamelift:CreateFleet"?`,
		allow(`"Action":["gamelift:Discribe*"],` + resource):                          `Statement[0].Action[0]: "gamelift:Discribe*" is not an action; did you mean "gamelift:Describe*"?`,
		allow(`"Action":"gamelift:*Fleet",` + resource):                               `Statement[0].Action: got "gamelift:*Fleet", want one wildcard, *, at its end`,
		allow(`"Action":"s3:GetObjectFromSomeBucketOrOther",` + resource):             `Statement[0].Action: "s3:GetObjectFromSomeBucketOrOther" is not an action`,
		allow(`"Action":"*","Resource":"fleet-a"`):                                    `Statement[0].Resource: got "fleet-a", want an ARN of six parts, such as "arn:aws:gamelift:*:*:fleet/fleet-1234", or "*"`,
		allow(`"Action":"*","Resource":["*","arn:aws:gamelift:::"]`):                  `Statement[0].Resource[1]: got "arn:aws:gamelift:::", want an ARN`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:*:*:queue/ranked"`):          `Statement[0].Resource: got "arn:aws:gamelift:*:*:queue/ranked", which no resource has; want "arn:aws:gamelift:REGION:ACCOUNT:" and one of fleet/, alias/,`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:us-east-1::fleet/f"`):        `Statement[0].Resource: got "arn:aws:gamelift:us-east-1::fleet/f", which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift::*:fleet/f"`):                `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws-cn:gamelift:*:*:fleet/f"`):            `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:s3:::bucket"`):                        `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:*:*:flo?t*"`):                `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:*:*:fleet"`):                 `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:iam::*:user/ann"`):                    `which no resource has`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:*::gamesession/f/*"`):        `Statement[0].Resource: got "arn:aws:gamelift:*::gamesession/f/*"; game sessions and computes belong to the fleet`,
		allow(`"Action":"*","Resource":"arn:aws:gamelift:*:*:fleet/${aws:username}"`): `Statement[0].Resource: got "arn:aws:gamelift:*:*:fleet/${aws:username}", but policy variables are not supported`,
		allow(`"Action":"*",` + resource + `,"Condition":{"StringEquals":{"aws:ResourceTag/a":["b","${aws:x}"]}}`):                      `Statement[0].Condition.StringEquals.aws:ResourceTag/a[1]: got "${aws:x}", but policy variables are not supported`,
		allow(`"Action":"*",` + resource + `,"Condition":[]`):                                                                           `Statement[0].Condition: got an empty list, want an object with operators`,
		allow(`"Action":"*",` + resource + `,"Condition":{"StringEqual":{}}`):                                                           `Statement[0].Condition.StringEqual: "StringEqual" is not a supported operator; did you mean "StringEquals"?`,
		allow(`"Action":"*",` + resource + `,"Condition":{"StringEquals":{}}`):                                                          `Statement[0].Condition.StringEquals: got an object, want an object with keys and values`,
		allow(`"Action":"*",` + resource + `,"Condition":{"StringEquals":{"aws:x":"a"}}`):                                               `Statement[0].Condition.StringEquals.aws:x: "aws:x" is not a supported condition key; want aws:SourceIp, aws:ResourceTag/KEY or aws:RequestTag/KEY`,
		allow(`"Action":"*",` + resource + `,"Condition":{"StringEquals":{"aws:SourceIp":"10.0.0.1"}}`):                                 `Statement[0].Condition.StringEquals.aws:SourceIp: StringEquals compares strings; want the operator IpAddress or NotIpAddress`,
		allow(`"Action":"*",` + resource + `,"Condition":{"IpAddress":{"aws:RequestTag/a":"10.0.0.1"}}`):                                `Statement[0].Condition.IpAddress.aws:RequestTag/a: IpAddress compares addresses; want the key "aws:SourceIp"`,
		allow(`"Action":"*",` + resource + `,"Condition":{"IpAddress":{"aws:SourceIp":["10.0.0.300"]}}`):                                `Statement[0].Condition.IpAddress.aws:SourceIp[0]: got "10.0.0.300", want an address or a range, such as "192.0.2.7" or "192.0.2.0/24"`,
		allow(`"Action":"*",` + resource + `,"Condition":{"IpAddress":{"aws:SourceIp":"2001:db8::1"}}`):                                 `Statement[0].Condition.IpAddress.aws:SourceIp: got "2001:db8::1", want at most /64`,
		document(`{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"}`, `{"Sid":"a","Effect":"Deny","Action":"*","Resource":"*"}`): `Statement[1].Sid: "a" is also the Sid of another statement`,
		document(strings.Repeat(`7,`, StatementsMax) + `7`):                                                                             `Statement: it has 33 statements, want at most 32`,
	} {
		p, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || p != nil {
			t.Errorf("%.200s:\n%v; want\n%s", text, err, want)
		}
	}
}

// Each kind of resource can be named with wildcards anywhere.
func TestResourcesThatCanBe(t *testing.T) {
	for _, arn := range strings.Fields(`* arn:*:*:*:*:* arn:aws:*:*:*:fleet/* arn:aws:gamelift:us-?ast-1:0*:fl* arn:aws:gamelift:*:*:fleet/* arn:aws:gamelift:*:*:?leet/x arn:aws:gamelift:*:*:*/x
		arn:aws:gamelift:*:*:alias/a arn:aws:gamelift:*:*:build/b arn:aws:gamelift:*:*:location/custom-* arn:aws:gamelift:*:*:gamesessionqueue/q arn:aws:gamelift:*:*:matchmaking*
		arn:aws:gamelift:*:*:matchmakingconfiguration/c arn:aws:gamelift:*:*:matchmakingruleset/r arn:aws:gamelift:*:*:gameservergroup/g arn:aws:gamelift:*:*:script/s
		arn:aws:iam::000000000000:role/admin arn:aws:iam::*:role/* arn:aws:*::*:role/*`) {
		parsed(t, `{"Effect":"Deny","Action":"*","Resource":"`+arn+`"}`)
	}
}

// Every action is named once, and can be named alone.
func TestActions(t *testing.T) {
	known := map[string]bool{}
	for _, name := range Actions() {
		if known[name] {
			t.Errorf("%s is there twice", name)
		}
		known[name] = true
		a, ok := Of(name)
		p := parsed(t, `{"Effect":"Allow","Action":"`+name+`","Resource":"*"}`)
		for b := range Actions() {
			if got, want := p.statements[0].actions.has(Action(b)), Action(b) == a; got != want || !ok {
				t.Errorf("%s: %s %v", name, Action(b), got)
			}
		}
	}
}

// longest returns a principal with the maximum of attached policies, each of one statement.
func longest(t testing.TB) (*Set, *Request) {
	var all []Named
	for i := range 20 {
		all = append(all, Named{fmt.Sprint("p", i), parsed(t,
			fmt.Sprintf(`{"Effect":"Allow","Action":"gamelift:*","Resource":"arn:aws:gamelift:*:*:fleet/fleet-%d-*","Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"},"StringNotLike":{"aws:ResourceTag/env":"prod*"}}}`, i))})
	}
	return NewSet(all), &Request{
		Action: MustBe("gamelift:UpdateFleetCapacity"), Resource: "arn:aws:gamelift:us-east-1:000000000000:fleet/fleet-19-5b3d", Source: Address("10.2.3.4"),
		ResourceTags: []keyvalue.Pair{{Key: "env", Value: "test"}},
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	set, q := longest(t)
	if d := set.Decide(q); !d.Allowed || d.By.Policy != "p19" {
		t.Fatalf("%+v", d)
	}
	if n := testing.AllocsPerRun(100, func() { set.Decide(q) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	b.ReportAllocs()
	set, q := longest(b)
	for b.Loop() {
		set.Decide(q)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(document(`{"Sid":"a","Effect":"Deny","NotAction":["gamelift:Describe*"],"Resource":["*","arn:aws:gamelift:*:*:fleet/*"],"Condition":{"NotIpAddress":{"aws:SourceIp":"10.0.0.0/8"},"StringLike":{"aws:ResourceTag/a":"?*"}}}`), fleetA)
	f.Add(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`, "*")
	f.Fuzz(func(t *testing.T, text, resource string) {
		p, err := Parse(text)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			if len(err.Error()) > 4096 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		q := Request{Action: MustBe("gamelift:ListFleets"), Resource: resource}
		d := NewSet([]Named{{"p", p}}).Decide(&q)
		if d.Allowed && d.Denied {
			t.Errorf("%+v", d)
		}
		// Another policy only takes away what it denies.
		all := Named{"all", parsed(t, `{"Effect":"Allow","Action":"*","Resource":"*"}`)}
		if both := NewSet([]Named{all, {"p", p}}).Decide(&q); both.Allowed == d.Denied {
			t.Errorf("alone %+v, with all allowed %+v", d, both)
		}
	})
}

func FuzzLike(f *testing.F) {
	f.Add("fleet-abc", "fleet-*?c")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		if len(text) > 200 || len(pattern) > 20 {
			return
		}
		if got, want := like(text, pattern), likeSlowly(text, pattern); got != want {
			t.Errorf("%q like %q: %v, want %v", text, pattern, got, want)
		}
	})
}

// likeSlowly implements the definition directly.
func likeSlowly(text, pattern string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return likeSlowly(text, pattern[1:]) || text != "" && likeSlowly(text[1:], pattern)
	case text == "":
		return false
	case pattern[0] == '?':
		return likeSlowly(text[characterLength(text):], pattern[1:])
	}
	return text[0] == pattern[0] && likeSlowly(text[1:], pattern[1:])
}
