package awsfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const before = `# my profiles
[default]
region = eu-west-1
s3 =
  endpoint_url = http://indented.example
  max_concurrent_requests = 20

[ profile  "dev" ]
region=us-west-2 ; kept
output = json


[services x]
`

// Values below a key are replaced as a whole, wherever the key stands.
func TestSetBelow(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(name, []byte("[services x]\nsso =\n  endpoint_url = a\n  other = b\ns3 =\n  endpoint_url = c\n\n[profile y]\nregion = z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	f.SetBelow("services x", "sso", "endpoint_url", "new")
	f.SetBelow("services x", "sso_oidc", "endpoint_url", "new")
	f.SetBelow("services x", "sso_oidc", "endpoint_url", "newer")
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if want := "[services x]\nsso =\n  endpoint_url = new\ns3 =\n  endpoint_url = c\nsso_oidc =\n  endpoint_url = newer\n\n[profile y]\nregion = z\n"; err != nil || string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSetChangesOnlyWhatItIsAskedTo(t *testing.T) {
	cases := map[string]struct {
		edit     func(*File)
		old, new string // the part of the file that changes
	}{
		"replace":              {func(f *File) { f.Set("default", "region", "us-east-1") }, "region = eu-west-1", "region = us-east-1"},
		"add to section":       {func(f *File) { f.Set("profile dev", "endpoint_url", "http://x") }, "output = json\n", "output = json\nendpoint_url = http://x\n"},
		"indented is not ours": {func(f *File) { f.Set("default", "endpoint_url", "http://x") }, "requests = 20\n", "requests = 20\nendpoint_url = http://x\n"},
		"new section":          {func(f *File) { f.Set("profile new", "region", "r") }, "[services x]\n", "[services x]\n\n[profile new]\nregion = r\n"},
		"add to empty section": {func(f *File) { f.Set("services x", "a", "b") }, "[services x]\n", "[services x]\na = b\n"},
		"remove":               {func(f *File) { f.Remove("profile dev", "output") }, "output = json\n", ""},
		"remove what is not":   {func(f *File) { f.Remove("profile dev", "nothing") }, "", ""},
	}
	for name, c := range cases {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "config")
				put(t, path, strings.ReplaceAll(before, "\n", lineEnd))
				f := open(t, path)
				c.edit(f)
				if err := f.Save(); err != nil {
					t.Fatal(err)
				}
				want := strings.ReplaceAll(strings.Replace(before, c.old, c.new, 1), "\n", lineEnd)
				if got := get(t, path); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

func TestReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	put(t, path, before)
	f := open(t, path)
	if got := f.Get("default", "region"); got != "eu-west-1" {
		t.Errorf("region is %q", got)
	}
	if !f.Has("profile dev") || f.Has("dev") {
		t.Errorf("has profile dev: %v, dev: %v", f.Has("profile dev"), f.Has("dev"))
	}
	if got := f.Get("default", "endpoint_url") + f.Get("nobody", "region"); got != "" {
		t.Errorf("got %q for values that are not there", got)
	}
}

func TestNewFileIsPrivateAndALinkStaysALink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "credentials")
	f := open(t, path)
	f.Set("dev", "aws_access_key_id", "MUSTX")
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, path); got != "[dev]\naws_access_key_id = MUSTX\n" {
		t.Errorf("got %q", got)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	f = open(t, link)
	f.Set("dev", "aws_access_key_id", "MUSTY")
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(get(t, path), "MUSTY") {
		t.Errorf("the link became %v, %v; the file is %q", info.Mode(), err, get(t, path))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A file that two editors have written may have both ends of lines. Its sections are found, and each line keeps its end.
func TestLinesThatEndDifferently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	put(t, path, "[default]\nregion = a\r\noutput = json\n\n[profile x]\nregion = b\r\nold = c")
	f := open(t, path)
	if got := f.Get("profile x", "region"); got != "b" || !f.Has("default") {
		t.Errorf("region is %q", got)
	}
	f.Set("profile x", "region", "new")
	f.Set("default", "endpoint_url", "http://x")
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if got, want := get(t, path), "[default]\nregion = a\r\noutput = json\nendpoint_url = http://x\r\n\n[profile x]\nregion = new\r\nold = c\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
