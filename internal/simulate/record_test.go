package simulate

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

func TestLinesAreReadBackAsWritten(t *testing.T) {
	p := Population{
		ArrivalsPerSecond: []RateAt{{0, 2}},
		PartySizes:        map[string]float64{"1": 1, "3": 1},
		Homes:             map[string]Home{"x": {Share: 1, LatencyMs: map[string]float64{"eu": 30, "us": 90}, Jitter: 0.2}},
		Attributes: map[string]Distribution{
			"skill": {Normal: &Normal{Mean: 10, Deviation: 3}}, "mode": {OneOf: map[string]float64{"a": 1, "b": 2}},
			"modes": {AnyOf: map[string]float64{"a": 0.5, "b": 0.5}}, "maps": {EachOf: map[string]Distribution{"m": {Uniform: &Uniform{Max: 5}}}},
		},
	}
	drawn, err := p.Draw(time.Minute, 7)
	if err != nil || len(drawn) < 60 {
		t.Fatalf("drew %d arrivals (%v), want about 120", len(drawn), err)
	}
	var text bytes.Buffer
	if err := WriteLines(&text, drawn); err != nil {
		t.Fatal(err)
	}
	read, err := ReadLines(&text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range drawn {
		sortAttributes(&drawn[i])
		sortAttributes(&read[i])
		if !reflect.DeepEqual(drawn[i], read[i]) {
			t.Fatalf("arrival %d: wrote\n%+v\nread\n%+v", i, drawn[i], read[i])
		}
	}
}

func sortAttributes(a *Arrival) {
	for i := range a.Players {
		named := map[string]ruleset.Value{}
		for _, x := range a.Players[i].Attributes {
			named[x.Name] = x.Value
		}
		a.Players[i].Attributes = a.Players[i].Attributes[:0]
		for _, name := range []string{"maps", "mode", "modes", "skill"} {
			if v, ok := named[name]; ok {
				a.Players[i].Attributes = append(a.Players[i].Attributes, ruleset.NamedValue{Name: name, Value: v})
			}
		}
	}
}

func TestTablesAreRead(t *testing.T) {
	const table = `at,ticket,player,skill,modes,weights,other,latency:eu
3,b,p3,30,,,x,
1.5,a,p1,10,ctf|koth|ctf,x=1|y=2.5,x,25
1.5,a,,20,koth,,x,40
`
	got, err := ReadTable(strings.NewReader(table), map[string]ruleset.Kind{"skill": ruleset.Number, "modes": ruleset.List, "weights": ruleset.Map})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Ticket != "a" || got[0].At != 1500*time.Millisecond || len(got[0].Players) != 2 || got[1].Ticket != "b" {
		t.Fatalf("got %+v, want ticket a with two players, then b", got)
	}
	p := got[0].Players[0]
	want := []ruleset.NamedValue{
		{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: 10}},
		{Name: "modes", Value: ruleset.Value{Kind: ruleset.List, List: []string{"ctf", "koth"}}},
		{Name: "weights", Value: ruleset.Value{Kind: ruleset.Map, Map: []ruleset.Entry{{Key: "x", Number: 1}, {Key: "y", Number: 2.5}}}},
	}
	if !reflect.DeepEqual(p.Attributes, want) || len(p.Latencies) != 1 || p.Latencies[0].Milliseconds != 25 {
		t.Errorf("player %+v, want attributes %+v and 25 ms to eu", p, want)
	}
	if id := got[0].Players[1].ID; id != "a-2" {
		t.Errorf("player without a name is called %q, want a-2", id)
	}
}

func TestWrongLinesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                     "line 1: unexpected EOF",
		`{"ticket":"a","players":[{"id":"p"}]}`: "line 1: at: missing",
		`{"at":-1,"ticket":"a","players":[{"id":"p"}]}`:                                                        "line 1: at: -1, want 0 to",
		`{"at":1,"players":[{"id":"p"}]}`:                                                                      "line 1: ticket: missing",
		`{"at":1,"ticket":"a"}`:                                                                                "line 1: players: 0, want 1 to 10",
		`{"at":1,"ticket":"a","players":[{}]}`:                                                                 "line 1: players[0].id: missing",
		`{"at":1,"ticket":"a","players":[{"id":"p","attributes":{"x":true}}]}`:                                 "line 1: players[0].attributes.x: true, want a number",
		`{"at":1,"ticket":"a","players":[{"id":"p","latencyInMs":{"eu":0}}]}`:                                  "line 1: players[0].latencyInMs.eu: 0, want at least 1",
		`{"at":1,"ticket":"a","players":[{"id":"p"}]}` + "\n" + `{"at":1,"ticket":"a","players":[{"id":"p"}]}`: "line 2: ticket: \"a\" occurs on an earlier line",
		`{"at":1,"ticket":"a","nonsense":1}`:                                                                   `unknown field "nonsense"`,
	} {
		if _, err := ReadLines(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestWrongTablesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "first line",
		"at,player\n1,p":               `no column "ticket"`,
		"at,ticket\nx,a":               `line 2: at: "x"`,
		"at,ticket\n1,":                "line 2: ticket: empty",
		"at,ticket,skill\n1,a,x":       `line 2: skill: "x", want a number`,
		"at,ticket,skill\n1,a,NaN":     `line 2: skill: "NaN", want a number`,
		"at,ticket,latency:eu\n1,a,-3": `line 2: latency:eu: "-3"`,
		"at,ticket\n1,a\n2,a":          "line 3: at: 2, but ticket a came at 1",
		"at,ticket\n1,a,3":             "wrong number of fields",
	} {
		if _, err := ReadTable(strings.NewReader(text), map[string]ruleset.Kind{"skill": ruleset.Number}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestWrongPopulationsAreNamedAllAtOnce(t *testing.T) {
	_, err := ReadPopulation(strings.NewReader(`{
		"arrivalsPerSecond": [{"hour": 25, "rate": -1}], "partySizes": {"11": 1}, "homes": {"x": {"share": 0, "latencyMs": {"eu": 0}}},
		"attributes": {"a": {}, "b": {"normal": {"deviation": -1}}, "c": {"anyOf": {"w": 2}}, "d": {"eachOf": {"k": {"oneOf": {"x": 1}}}}}}`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"arrivalsPerSecond[0].hour: 25", "arrivalsPerSecond[0].rate: -1", `partySizes: "11"`, "homes: share: all weights are 0", "homes.x.latencyMs.eu: 0",
		"attributes.a: forms []", "attributes.b.normal: deviation -1", "attributes.c.anyOf.w: 2", "attributes.d.eachOf.k: want normal or uniform",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

func TestDrawsAreTheSameForASeedAndFollowTheDay(t *testing.T) {
	p := Population{ArrivalsPerSecond: []RateAt{{0, 0}, {12, 10}}}
	a, err := p.Draw(24*time.Hour, 3)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := p.Draw(24*time.Hour, 3)
	if !reflect.DeepEqual(a, b) {
		t.Error("two draws with one seed differ")
	}
	noon := 0
	for _, x := range a {
		if x.At >= 9*time.Hour && x.At < 15*time.Hour {
			noon++
		}
	}
	// The rate rises to 10 at noon and falls to 0 at midnight: 432,000 in all, seven sixteenths of them in these six hours.
	if len(a) < 425_000 || len(a) > 439_000 || noon < 185_000 || noon > 193_000 {
		t.Errorf("%d arrivals, %d of them around noon; want about 432000 and 189000", len(a), noon)
	}
}
