package launch

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                 nil,
		"--a 1":            {"--a", "1"},
		"--a  1":           {"--a", "", "1"},
		`--name "my game"`: {"--name", `"my`, `game"`},
	} {
		if got := Split(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSplitQuoted(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		"  --a   1 ":            {"--a", "1"},
		`--name "my game" ''`:   {"--name", "my game", ""},
		`a'b c'd "e\"f\\g\h"`:   {"ab cd", `e"f\g\h`},
		`one\ word \"`:          {"one word", `"`},
		`--json '{"a": "b\n"}'`: {"--json", `{"a": "b\n"}`},
	} {
		if got, err := SplitQuoted(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`"a`, `'a`, `a\`} {
		if got, err := SplitQuoted(text); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	words := Split(`--port={port} --query {port:query} --again {port}{port:query} --n {index} {process_id} {log_dir}/x {"p":{port}} {other} {port:a b} {port: {} }{`)
	if got, want := words.PortNames(), []string{"", "query"}; !slices.Equal(got, want) {
		t.Fatalf("ports: got %q, want %q", got, want)
	}
	values := Values{Index: 3, ProcessID: "proc-{index}", LogDir: "/var/log/7", Ports: map[string]int{"": 7000, "query": 7001}}
	want := []string{"--port=7000", "--query", "7001", "--again", "70007001", "--n", "3", "proc-{index}", "/var/log/7/x", `{"p":7000}`, "{other}", "{port:a", "b}", "{port:", "{}", "}{"}
	if got := words.Fill(values); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	environment := values.Environment()
	slices.Sort(environment)
	if want := []string{"MUSTER_PORT=7000", "MUSTER_PORT_QUERY=7001"}; !slices.Equal(environment, want) {
		t.Errorf("environment: got %q, want %q", environment, want)
	}
	if names := Split("--a 1").PortNames(); !slices.Equal(names, []string{""}) {
		t.Errorf("no placeholder: got %q", names)
	}
}
