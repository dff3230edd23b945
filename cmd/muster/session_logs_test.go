package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/waittest"
)

// asGame makes this test binary a game server that writes logs, and ends its game session once there is a file "end" in its directory.
const asGame = "TEST_BINARY_IS_GAME"

func playGame() {
	fmt.Println("the game begins")
	here, _ := os.Getwd()
	own := filepath.Join(os.Getenv("MUSTER_LOG_DIR"), "own.log")
	port, _ := strconv.Atoi(os.Args[1])
	options := gameserver.Options{Port: port, LogPaths: []string{"/local/game/logs", own, "/etc/passwd", filepath.Join(here, "..", "agent")}}
	var game *gameserver.Server
	game = gameserver.New(options, gameserver.Callbacks{
		OnCreateSessionBegin: func(_ context.Context, s gameserver.Session) error {
			logs := filepath.Join(here, "logs")
			err := errors.Join(os.MkdirAll(logs, 0o755), os.WriteFile(filepath.Join(logs, "game.log"), []byte("session "+s.ID+"\n"), 0o600),
				os.WriteFile(own, []byte("own\n"), 0o600))
			_ = os.Symlink("/etc/passwd", filepath.Join(logs, "stolen"))
			go func() {
				for {
					if _, err := os.Stat(filepath.Join(here, "end")); err == nil {
						_ = game.End(context.Background())
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
			return err
		},
	})
	if err := game.Run(context.Background()); err != nil {
		fmt.Println("the game failed:", err)
		os.Exit(1)
	}
}

// TestSessionLogs fetches the log of a game session after its end, as the AWS CLI's get-game-session-log does.
func TestSessionLogs(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	ctx, url := t.Context(), "http://"+address
	sdk, check := clientForTest(t, url, keys[identity.Admin])
	fleet := fleetForTest(t, sdk)
	root := filepath.Join(dir, "game")
	check(os.Mkdir(root, 0o755))
	self, err := os.Executable()
	check(err)
	check(os.WriteFile(filepath.Join(root, "server"), []byte("#!/bin/sh\n"+asGame+"=1 exec '"+self+"' \"$@\"\n"), 0o755))
	file := filepath.Join(dir, "runtime.json")
	check(os.WriteFile(file, []byte(`{"ServerProcesses":[{"LaunchPath":"server","Parameters":"{port}","ConcurrentExecutions":1}]}`), 0o600))
	stop, done := agentForTest(t, keys[identity.Admin], dir, "--server", url, "--fleet", fleet, "--root", root, "--runtime-config", file, "--ports", "24000-24999")
	defer stop()
	var session *types.GameSession
	waittest.Until(t, "a game session", func() bool {
		out, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: &fleet, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2)})
		if err == nil {
			session = out.GameSession
		}
		return err == nil
	})
	waittest.Until(t, "the game session is active", func() bool {
		out, err := sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: session.GameSessionId})
		check(err)
		return out.GameSessions[0].Status == types.GameSessionStatusActive
	})
	ask := func() (*gamelift.GetGameSessionLogUrlOutput, error) {
		return sdk.GetGameSessionLogUrl(ctx, &gamelift.GetGameSessionLogUrlInput{GameSessionId: session.GameSessionId})
	}
	_, err = ask()
	if none, ok := errors.AsType[*types.NotFoundException](err); !ok || !strings.Contains(none.ErrorMessage(), "has not ended") {
		t.Errorf("before the end: %v", err)
	}
	check(os.WriteFile(filepath.Join(root, "end"), nil, 0o600))
	var place string
	waittest.Until(t, "the log of the game session", func() bool {
		out, err := ask()
		if _, none := errors.AsType[*types.NotFoundException](err); none {
			return false
		}
		check(err)
		place = *out.PreSignedUrl
		return true
	})
	fetch := func(method, url string, body io.Reader) (int, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, url, body)
		check(err)
		answer, err := http.DefaultClient.Do(r)
		check(err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(err)
		return answer.StatusCode, text
	}
	status, content := fetch(http.MethodGet, place, nil)
	if status != http.StatusOK {
		t.Fatalf("GET: %d %s", status, content)
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	check(err)
	var names []string
	texts := map[string]string{}
	for _, f := range archive.File {
		names = append(names, f.Name)
		r, err := f.Open()
		check(err)
		text, err := io.ReadAll(r)
		check(err)
		texts[f.Name] = string(text)
	}
	if want := []string{"output.log", "game/logs/game.log", "log_dir/own.log", "ReadMe.txt"}; !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	id := *session.GameSessionId
	if got := texts["game/logs/game.log"]; got != "session "+id+"\n" {
		t.Errorf("game.log: %q", got)
	}
	if !strings.HasPrefix(texts["output.log"], "the game begins\n") || texts["log_dir/own.log"] != "own\n" {
		t.Errorf("output %q, own log %q", texts["output.log"], texts["log_dir/own.log"])
	}
	for _, part := range []string{id, "Invalid Log Path: /etc/passwd", filepath.Join(root, "..", "agent"), "game/logs/stolen"} {
		if !strings.Contains(texts["ReadMe.txt"], part) {
			t.Errorf("%q is not in ReadMe.txt:\n%s", part, texts["ReadMe.txt"])
		}
	}
	for what, request := range map[string][2]string{
		"without a ticket":            {http.MethodGet, place[:strings.IndexByte(place, '?')]},
		"with a wrong one":            {http.MethodGet, place[:len(place)-1] + "g"},
		"an upload, with one to read": {http.MethodPut, place},
	} {
		if status, _ := fetch(request[0], request[1], strings.NewReader("x")); status != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", what, status)
		}
	}
	stop()
	check(<-done)
	if left, _ := filepath.Glob(filepath.Join(dir, "agent", "logs-upload-*")); len(left) > 0 {
		t.Errorf("archives stay in the agent's directory: %v", left)
	}
}
