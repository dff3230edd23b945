package charts

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func compose(t *testing.T, profile string, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../deploy/compose/compose.yaml"}, cli.WithProfiles([]string{profile}), cli.WithEnv(env), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestComposeServices(t *testing.T) {
	for profile, want := range map[string][]string{"one": {"muster"}, "three": {"muster-1", "muster-2", "muster-3"}} {
		project := compose(t, profile)
		names := project.ServiceNames()
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s: got %q, want %q", profile, names, want)
		}
		for _, s := range project.Services {
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.Volumes) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.HealthCheck == nil {
				t.Errorf("%s: %+v", s.Name, s)
			}
			if url := *s.Environment["MUSTER_PUBLIC_URL"]; url != "http://127.0.0.1:"+s.Ports[0].Published {
				t.Errorf("%s: game servers are sent to %s, and its port is published as %s", s.Name, url, s.Ports[0].Published)
			}
		}
	}
}

// TestComposeBecomesACluster starts processes with the settings of the three services, and lets them join as in the guide. Without a token, a node does not start.
func TestComposeBecomesACluster(t *testing.T) {
	project := compose(t, "three")
	var nodes [3]*node
	for i := range nodes {
		s := project.Services["muster-"+string('1'+rune(i))]
		at := loopback(t)
		n := &node{t: t, args: []string{"serve"}}
		for name, value := range s.Environment {
			switch name {
			case "MUSTER_DATA":
				*value = filepath.Join(t.TempDir(), "data")
			case "MUSTER_LISTEN":
				*value = loopback(t)
			case "MUSTER_CLUSTER_LISTEN":
				*value = at
			case "MUSTER_CLUSTER_ADVERTISE":
				if want := s.Name + ":8090"; *value != want {
					t.Errorf("%s=%s, want %s", name, *value, want)
				}
				*value = at
			}
			if name == "MUSTER_JOIN" {
				if *value != "none" || i == 0 {
					t.Errorf("%s: %s=%s", s.Name, name, *value)
				}
				continue
			}
			n.env = append(n.env, name+"="+*value)
		}
		nodes[i] = n
	}
	alone := &node{t: t, env: append(slices.Clone(nodes[1].env), "MUSTER_JOIN=none")}
	if out, err := alone.run("serve"); err == nil || !strings.Contains(out, "join token") {
		t.Errorf("a node without a token: %v: %s", err, out)
	}
	becomeCluster(t, nodes)
	nodes[2].restart("none") // as docker compose up without a token does
}
