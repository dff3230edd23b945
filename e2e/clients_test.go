package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// pipedClient is a client in another language: a program that reads calls as JSON lines and writes an answer to each.
type pipedClient struct {
	mu      sync.Mutex
	in      io.Writer
	answers *json.Decoder
	calls   *calls
}

func (c *pipedClient) call(t *testing.T, operation string, input []byte) (object, string, string) {
	line, err := json.Marshal(map[string]any{"Operation": operation, "Input": json.RawMessage(input)})
	must(t, err)
	var result struct {
		Answer        object
		Code, Message string
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.in.Write(append(line, '\n'))
	must(t, err)
	if err := c.answers.Decode(&result); err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	c.calls.note(operation, result.Code)
	return result.Answer, result.Code, result.Message
}

// The stories by clients that find all of the API in its model when they start: the newest botocore, on which boto3 and the AWS CLI are built, and the SDK for Ruby. They sign with a key, so that the
// service checks their signatures.
func TestStoriesWithOtherSDKs(t *testing.T) {
	t.Parallel()
	model, err := filepath.Abs("../internal/gamelift/model/gamelift-model.json")
	must(t, err)
	for name, program := range map[string]func(*testing.T) *exec.Cmd{
		"botocore": func(t *testing.T) *exec.Cmd {
			return exec.CommandContext(t.Context(), newestClient(t, "python"), "clients/call_botocore.py")
		},
		"Ruby": func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), "ruby", "clients/call_ruby.rb") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t)
			s, _ := startProduction(t)
			id, secret := s.key("admin")
			cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_ENDPOINT_URL="+s.url(), "AWS_DEFAULT_REGION="+region, "HOME="+t.TempDir(), "MODEL="+model)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			c := &pipedClient{in: in, answers: json.NewDecoder(bufio.NewReader(out)), calls: newCalls()}
			t.Run("together", func(t *testing.T) { tellStories(t, s, c) })
			must(t, in.Close())
			must(t, cmd.Wait())
			t.Logf("%s: %s", name, c.calls.summary())
		})
	}
}
