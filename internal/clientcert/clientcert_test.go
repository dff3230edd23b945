package clientcert

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/listen/devca"
)

// authorityFile writes the certificate of an authority to a file and returns its name.
func authorityFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := devca.Open(dir); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no certificate: %v", err)
	}
	for _, path := range all {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), "BEGIN CERTIFICATE") {
			return path
		}
	}
	t.Fatal("no certificate")
	return ""
}

// Each mistake in the file is named with its place.
func TestMistakesInTheFile(t *testing.T) {
	ca, err := json.Marshal(authorityFile(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(authorityFile(t))
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.pem")
	if err := os.WriteFile(damaged, append(whole, whole[:len(whole)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	const rules = `"rules":[{"subjects":["lobby-*"],"roles":["backend"]}]`
	for content, want := range map[string]string{
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,` + rules + `}]}`:                                                                                  "",
		`{"authorities":[{"name":"a","caFile":CA,` + rules + `}]}`:                                                                                                "hosts: 0, want",
		`{"hosts":["https://a"],"authorities":[{"name":"a","caFile":CA,` + rules + `}]}`:                                                                          "hosts[0]:",
		`{"hosts":["a:8443"],"authorities":[{"name":"a","caFile":CA,` + rules + `}]}`:                                                                             "hosts[0]:",
		`{"hosts":["a"],"authorities":[]}`:                                                                                                                        "authorities: 0, want",
		`{"hosts":["a"],"authorities":[{"name":"A","caFile":CA,` + rules + `}]}`:                                                                                  "authorities[0].name:",
		`{"hosts":["a"],"authorities":[{"name":"sha256","caFile":CA,` + rules + `}]}`:                                                                             "authorities[0].name:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,` + rules + `},{"name":"a","caFile":CA,` + rules + `}]}`:                                           "authorities[1].name:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":"/none",` + rules + `}]}`:                                                                             "authorities[0].caFile:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":` + strconv.Quote(damaged) + `,` + rules + `}]}`:                                                      "authorities[0].caFile:",
		`{"hosts":["a"],"authorities":[{"name":"a",` + rules + `}]}`:                                                                                              "authorities[0].caFile:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"subject":"serial",` + rules + `}]}`:                                                               "authorities[0].subject:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[]}]}`:                                                                                     "authorities[0].rules:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["*"],"roles":["backend"]}]}]}`:                                               "matches every certificate",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["*"],"attributes":{"OU":["x"]},"roles":["backend"]}]}]}`:                     "",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["x"],"attributes":{"L":["x"]},"roles":["backend"]}]}]}`:                      "want O or OU",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["x"],"roles":["owner"]}]}]}`:                                                 "roles[0]:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["x"],"roles":["backend"],"maxDuration":"5m"}]}]}`:                            "maxDuration:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"rules":[{"subjects":["x"],"roles":["backend"],"groups":["` + strings.Repeat("g", 300) + `"]}]}]}`: "groups:",
		`{"hosts":["a"],"authorities":[{"name":"a","caFile":CA,"crl":"x",` + rules + `}]}`:                                                                        "unknown field",
	} {
		_, err := parse([]byte(strings.ReplaceAll(content, "CA,", string(ca)+",")))
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s\n%v, want %q", content, err, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for text, want := range map[string]string{
		"sha256:AB:CD": "sha256:abcd", "studio/0A:1B": "studio/a1b", "studio/0": "studio/", "nothing": "", "/none/x.pem": "",
	} {
		if got, _, err := Named(text); got != want || (want == "") != (err != nil) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	// The revocation of an authority's own certificate would have no effect on those that it has signed.
	if got, _, err := Named(authorityFile(t)); err == nil {
		t.Errorf("the certificate of an authority is named %s", got)
	}
}

// The file in the guide is valid, except for the location of its authorities.
func TestFileOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "## Client certificates")
	_, after, _ = strings.Cut(after, "```json\n")
	content, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the guide shows no file")
	}
	content = strings.ReplaceAll(content, "/etc/muster/studio-ca.pem", authorityFile(t))
	if _, err := parse([]byte(content)); err != nil {
		t.Error(err)
	}
}

func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-X509-ECDSA-SHA256 Credential=1/20261126/us-east-1/rolesanywhere/aws4_request, SignedHeaders=host;x-amz-date;x-amz-x509, Signature=00")
	f.Add("AWS4-X509-RSA-SHA256 Credential=, SignedHeaders=, Signature=")
	f.Fuzz(func(t *testing.T, header string) {
		if a, err := parseAuthorization(header); err == nil && (len(a.signature) == 0 || a.Service != service) {
			t.Errorf("%q is taken", header)
		}
	})
}
