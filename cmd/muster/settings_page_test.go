package main

import (
	"flag"
	"fmt"
	"html"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/settings"
)

var update = flag.Bool("update", false, "write docs/settings.md")

// The page of the settings is made from their declarations: go test ./cmd/muster -run TestSettingsPage -update
func TestSettingsPage(t *testing.T) {
	const path = "../../docs/settings.md"
	page := settingsPage()
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(text), "\r", "") != page {
		t.Errorf("%s is out of date: go test ./cmd/muster -run TestSettingsPage -update", path)
	}
}

func settingsPage() string {
	var b strings.Builder
	b.WriteString(`# Settings

Every setting of ` + "`muster serve`" + `, with its default. This page is made from the program: ` + "`go test ./cmd/muster -run TestSettingsPage -update`" + `.

` + "`--limit-fleets 50`, the variable `MUSTER_LIMIT_FLEETS=50` and `{\"limit-fleets\": 50}`" + ` in the file of ` + "`--config`" + ` are the same; flags win over variables, and variables over the file.
` + "`muster config`" + ` shows the values in force and where each comes from; ` + "`muster config check FILE`" + ` checks a file alone. Times have a unit (` + "`500ms`, `10s`, `1h30m`" + `), sizes as well
(` + "`64MiB`, `2GiB`" + `). The last column says when a change takes effect: with a reload (` + "`muster reload`, `systemctl reload muster`, SIGHUP; [how](guide/operations.md#reload)" + `), or
when the service starts. In a cluster all nodes should have the same values, except of settings *per node*: the overview and ` + "`muster cluster status`" + ` name those that differ.

| setting | value | default | meaning | takes effect |
| --- | --- | --- | --- | --- |
`)
	defaults := reflect.ValueOf(settings.Defaults())
	i := 0
	for field := range defaults.Type().Fields() {
		value := defaults.Field(i)
		i++
		kind := field.Tag.Get("placeholder")
		if kind == "" && field.Type.Kind() == reflect.Bool {
			kind = "true or false"
		}
		without := "–"
		if !value.IsZero() {
			without = "`" + fmt.Sprint(value.Interface()) + "`"
		}
		effect := "at a start"
		if settings.Reloads(field) {
			effect = "with a reload"
		}
		if !settings.Alike(field) {
			effect += ", per node"
		}
		cell := func(text string) string { return strings.ReplaceAll(html.EscapeString(text), "|", `\|`) }
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", field.Tag.Get("name"), cell(kind), without, strings.ReplaceAll(cell(field.Tag.Get("help")), "&#39;", "'"), effect)
	}
	return b.String()
}
