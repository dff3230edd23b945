package settings

import (
	"slices"
	"testing"
	"time"
)

// All settings are listed with their defaults and sources, and none shows a secret.
func TestAllSettings(t *testing.T) {
	s := Defaults()
	s.Reservation, s.MetricsMax, s.Join, s.NotifyEvents = 90*time.Second, 5<<20, "muster-join-secret", "https://example.com/hook/secret"
	all := s.All(func(name string) string { return "from " + name })
	want := map[string]Setting{
		"reservation":   {Value: "1m30s", Default: "1m0s", Form: "TIME"},
		"metrics-max":   {Value: "5MiB", Default: "1GiB", Form: "SIZE"},
		"join":          {Value: "…", Form: "TOKEN"},
		"notify-events": {Value: "https://example.com/…", Form: "URL"},
		"dev":           {Value: "false", Default: "false"},
	}
	for name, w := range want {
		i := slices.IndexFunc(all, func(x Setting) bool { return x.Name == name })
		if i < 0 {
			t.Fatalf("%s is missing", name)
		}
		got := all[i]
		if got.Help == "" || got.From != "from "+name {
			t.Errorf("%+v", got)
		}
		if got.Value != w.Value || got.Default != w.Default || got.Form != w.Form {
			t.Errorf("%+v; want %+v", got, w)
		}
	}
}
