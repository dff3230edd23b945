package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Clients that are generated from the documents compile, and play a login, a party and a search against the service: in TypeScript
// from the OpenAPI 3.1 document, in Go and C# from its rendering in 3.0. Their stories are in js/playerflow.ts and testdata/playerclients.
func TestGeneratedPlayerClients(t *testing.T) {
	t.Parallel()
	needModules(t)
	p := startService(t, "--player-flow").prepare()
	p.queue("duel")
	p.matchOf("duel", "40") // more players than exist, so that those of the three clients are not matched with each other
	for name, story := range map[string]func(t *testing.T, url string){
		"TypeScript": playInTypeScript, "Go": playInGo, "CSharp": playInCSharp,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, p.url())
		})
	}
}

func needModules(t *testing.T) {
	t.Helper()
	for _, name := range []string{"openapi-typescript", "nswag", "@redocly/cli"} {
		if _, err := os.Stat("js/node_modules/" + name); err != nil {
			t.Fatalf("js/node_modules/%s is missing: run scripts/test-needs.sh", name)
		}
	}
}

func playInTypeScript(t *testing.T, url string) {
	out := runTool(t, "js", []string{"MUSTER_URL=" + url}, "node", "playerflow.js")
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

// playInGo generates a client with oapi-codegen. Its go.mod has another file name in the repository, because the generated types do not exist there.
func playInGo(t *testing.T, url string) {
	dir := t.TempDir()
	from := filepath.Join("testdata", "playerclients", "go")
	for name, as := range map[string]string{"client.mod": "go.mod", "client.sum": "go.sum", "main.go": "main.go"} {
		copyTo(t, filepath.Join(from, name), filepath.Join(dir, as))
	}
	saveDocument(t, url, dir)
	runTool(t, dir, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", "calls.go", "openapi.json")
	runTool(t, dir, nil, "go", "build", "-o", "client", ".")
	if out := runTool(t, dir, []string{"MUSTER_URL=" + url}, filepath.Join(dir, "client")); out != "ok\n" {
		t.Error(out)
	}
}

// playInCSharp generates a client with NSwag and compiles it with Debian's Mono. The JSON library is the one that comes with NSwag.
func playInCSharp(t *testing.T, url string) {
	dir := t.TempDir()
	nswag, err := filepath.Abs("js/node_modules/nswag/bin/binaries/Win")
	must(t, err)
	copyTo(t, filepath.Join("testdata", "playerclients", "csharp", "Program.cs"), filepath.Join(dir, "Program.cs"))
	copyTo(t, filepath.Join(nswag, "Newtonsoft.Json.dll"), filepath.Join(dir, "Newtonsoft.Json.dll"))
	saveDocument(t, url, dir)
	runTool(t, dir, nil, "mono", filepath.Join(nswag, "NSwag.exe"), "openapi2csclient", "/input:openapi.json", "/output:Calls.cs",
		"/namespace:Muster.PlayerFlow", "/className:PlayerFlowClient", "/generateOptionalPropertiesAsNullable:true")
	runTool(t, dir, nil, "mcs", "-nologo", "-out:client.exe", "-r:System.Net.Http", "-r:System.Runtime.Serialization",
		"-r:System.ComponentModel.DataAnnotations", "-r:Newtonsoft.Json.dll", "Calls.cs", "Program.cs")
	if out := runTool(t, dir, []string{"MUSTER_URL=" + url}, "mono", "client.exe"); out != "ok\n" {
		t.Error(out)
	}
}

// saveDocument saves the player document in OpenAPI 3.0 from the service.
func saveDocument(t *testing.T, url, dir string) {
	t.Helper()
	answer, err := http.Get(url + "/playerflow/v1/player/openapi-3.0.json")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the document: %s %s", answer.Status, text)
	}
	must(t, os.WriteFile(filepath.Join(dir, "openapi.json"), text, 0o644))
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o644))
}

// runTool runs a program to its end, and returns what it wrote.
func runTool(t *testing.T, dir string, more []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(more, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%.5000s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// All documents pass Redocly's rules, warnings included.
func TestPlayerDocumentsPassTheLinter(t *testing.T) {
	t.Parallel()
	needModules(t)
	args := []string{"node_modules/@redocly/cli/bin/cli.js", "lint", "--config", "redocly.yaml"}
	documents, err := filepath.Glob("../docs/player-flow/openapi-*.json")
	must(t, err)
	if len(documents) != 6 {
		t.Fatalf("there are %d documents, want two of each realm: %v", len(documents), documents)
	}
	for _, document := range documents {
		path, err := filepath.Abs(document)
		must(t, err)
		args = append(args, path)
	}
	runTool(t, "js", nil, "node", args...)
}
