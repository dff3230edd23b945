package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// servedForTest starts a service on a free port, not in dev mode, with a key of each kind.
func servedForTest(t *testing.T, change func(*settings.Settings)) (dir, address string, keys map[identity.Role]identity.AccessKey) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	store, err := keyring.OpenOffline(t.Context(), dir, nil, cell.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	keys = map[identity.Role]identity.AccessKey{}
	for _, role := range []identity.Role{identity.Client, identity.ReadOnly, identity.Admin} {
		if keys[role], err = store.Create(t.Context(), access.Actor{}, keyring.New{Role: role, Name: role.String()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s := settings.Defaults()
	s.Data, s.Listen = dir, "127.0.0.1:0"
	if change != nil {
		change(&s)
	}
	x, err := service.Start(t.Context(), s, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return dir, x.Addr().String(), keys
}

func envOf(key identity.AccessKey) []string {
	return []string{"AWS_ACCESS_KEY_ID=" + key.ID, "AWS_SECRET_ACCESS_KEY=" + key.Secret}
}

func TestExplain(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	url := "http://" + address
	sdk := gamelift.New(gamelift.Options{
		BaseEndpoint: &url, Region: "eu-central-1",
		Credentials: credentials.NewStaticCredentialsProvider(keys[identity.Admin].ID, keys[identity.Admin].Secret, ""),
	})
	if _, err := sdk.CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String("q")}); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
		PlacementId: aws.String("p1"), GameSessionQueueName: aws.String("q"), MaximumPlayerSessionCount: aws.Int32(2),
	}); err != nil {
		t.Fatal(err)
	}

	ask := []string{"explain", "--listen", address, "--data", filepath.Join(t.TempDir(), "none"), "placement", "p1"}
	for _, part := range []string{"placement p1 is PENDING", "its queue has no destinations", "queue    ", "STARTED"} {
		if out := mustRun(t, envOf(keys[identity.ReadOnly]), ask...); !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	var x operator.Explanation
	if err := json.Unmarshal([]byte(mustRun(t, envOf(keys[identity.Admin]), append(ask, "--json")...)), &x); err != nil || x.ID != "p1" || x.Kind != "placement" {
		t.Errorf("got %+v, %v", x, err)
	}
	if out := mustRun(t, nil, "explain", "--listen", address, "--data", dir, "placement", "p1"); !strings.Contains(out, "PENDING") {
		t.Errorf("with a key of the data directory:\n%s", out)
	}
	if out, err := runForTest(t, nil, ask...); err == nil || !strings.Contains(err.Error(), "Authentication") || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without a key: %s, %v", out, err)
	}
	if out, err := runForTest(t, envOf(keys[identity.Client]), ask...); err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("with a game client's key: %s, %v", out, err)
	}
	wrong := keys[identity.Admin]
	wrong.Secret = "wrong"
	if out, err := runForTest(t, envOf(wrong), ask...); err == nil || !strings.Contains(err.Error(), "signature") || !strings.Contains(err.Error(), wrong.ID) {
		t.Errorf("with a wrong secret: %s, %v", out, err)
	}
	for _, id := range []string{"arn:aws:gamelift:eu-central-1::gamesession/fleet-1/custom-a/x y", "a%2Fb"} {
		_, err := runForTest(t, envOf(keys[identity.Admin]), "explain", "--listen", address, "game-session", id)
		if tail := id[strings.LastIndexByte(id, ':')+1:]; err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(tail, "gamesession/")+" not found") {
			t.Errorf("%s: got %v", id, err)
		}
	}
	home := t.TempDir() // muster aws-profile writes the endpoint beside the key
	mustRun(t, []string{"HOME=" + home, "MUSTER_DATA=" + dir, "MUSTER_LISTEN=" + address}, "aws-profile", "studio")
	for variable, flags := range map[string][]string{"AWS_PROFILE=studio": nil, "AWS_PROFILE=other": {"--profile", "studio"}} {
		args := append([]string{"explain", "--data", filepath.Join(t.TempDir(), "none"), "placement", "p1"}, flags...)
		if out := mustRun(t, []string{"HOME=" + home, variable}, args...); !strings.Contains(out, "PENDING") {
			t.Errorf("with the endpoint of a profile, %s %v:\n%s", variable, flags, out)
		}
	}
	answer, err := http.Get(url + operator.Prefix + "explain/placement/p1")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("without a signature: %s", answer.Status)
	}
}
