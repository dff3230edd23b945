package configfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type example struct {
	Names []string          `json:"names"`
	Of    map[string]string `json:"of"`
}

func parse(content []byte) (*example, error) {
	x := new(example)
	return x, Decode(content, x)
}

func TestRead(t *testing.T) {
	for content, want := range map[string]string{
		"{\n\"names\": [\"a\"],\n\"of\": {}}\n": "",
		"":                                      "is empty",
		" \n":                                   "is empty",
		"{\n\"names\": [\"a\"\n":                "line 2: the file ends",
		"{\n\"names\": [\"a\"],\n}":             "line 3: invalid character '}'",
		"{\n\"names\": 7}":                      "line 2: json: cannot unmarshal number into Go struct field example.names",
		"{\n\"name\": []}":                      `unknown field "name"`,
		"{\"names\": [],\n\"of\": {\"a\": \"b\",\n \"a\": \"c\"}}": "line 3: \"a\" is given twice",
		"{\"names\": [\"a\"],\n\n\"names\": []}":                   "line 3: \"names\" is given twice",
		"{\"names\": [\"\xff\"]}":                                  "line 1: invalid UTF-8",
		"{}\n{}":                                                   "line 2: want nothing after the object",
		"{}\n]":                                                    "line 2: want nothing after the object",
		strings.Repeat(" ", bytesMax) + "{\"of\":null}":            "more than 1048576 bytes",
	} {
		path := filepath.Join(t.TempDir(), "file.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := Read(path, parse)
		if want == "" {
			if err != nil || len(x.Names) != 1 {
				t.Errorf("%q: %+v, %v", content, x, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), path+" ") && !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q: %v, want the path and %q", content, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), parse); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	var wrong Mistakes
	wrong.List("good", []string{"a", "b"})
	if err := wrong.Err(); err != nil {
		t.Error(err)
	}
	wrong.Add("100%d", "%d, want 1", 2)
	wrong.List("none", nil)
	wrong.List("some", []string{"a", "", "a", strings.Repeat("x", valueBytesMax+1)})
	want := "100%d: 2, want 1\nnone: 0, want 1 to 64\nsome[1]: 0 bytes, want 1 to 512\nsome[2]: \"a\" is given twice\nsome[3]: 513 bytes, want 1 to 512"
	if got := fmt.Sprint(wrong.Err()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
