package e2e

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A command that Ctrl-C ends says so, whether a library has the cause or only that its context ended.
func TestInterruptedCommand(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	for _, args := range [][]string{{"hosts", "--server", "http://" + silent.Addr().String()}, {"logs", "server", "--server", "http://" + silent.Addr().String()}} {
		cmd := exec.CommandContext(t.Context(), musterBinary, args...)
		cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		asked, err := silent.Accept()
		must(t, err)
		defer asked.Close()
		must(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err == nil || !strings.HasSuffix(out.String(), "interrupt signal received\n") {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}
