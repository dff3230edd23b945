package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// debianAWS is the AWS CLI as Debian packages it; scripts/test-needs.sh installs it.
const debianAWS = "/usr/bin/aws"

// awsVariable has the address of awscommands.py. If it is set, this test binary forwards a command to it.
const awsVariable = "E2E_AWS_COMMANDS"

// awsCommand is a command for awscommands.py.
type awsCommand struct {
	Args, Env []string
	Dir       string
}

// run makes awscommands.py run the command with these standard files, and returns its exit code.
func (c awsCommand) run(address string, files ...*os.File) (code int, err error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: address, Net: "unixpacket"})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	message, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	var descriptors []int
	for _, f := range files {
		descriptors = append(descriptors, int(f.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix(message, syscall.UnixRights(descriptors...), nil); err != nil {
		return 0, err
	}
	answer := make([]byte, 16)
	n, err := conn.Read(answer)
	if err != nil {
		return 0, fmt.Errorf("the command has not ended in order: %w", err)
	}
	return strconv.Atoi(string(answer[:n]))
}

// passOn is the main function of this test binary if awsVariable is set.
func passOn(address string) int {
	dir, err := os.Getwd()
	if err == nil {
		os.Unsetenv(awsVariable)
		var code int
		if code, err = (awsCommand{os.Args[1:], os.Environ(), dir}).run(address, os.Stdin, os.Stdout, os.Stderr); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "aws:", err)
	return 70
}

// awsCommands is the process of awscommands.py, which starts with the first command and ends with this one.
var awsCommands struct {
	sync.Once
	address string
	program string // a program like debianAWS, which forwards commands to the process
	input   *os.File
	err     error
}

// awsCLI returns the path of a program that does the same as debianAWS in an eighth of the time.
func awsCLI(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(debianAWS); err != nil {
		t.Fatalf("%s is not installed: run scripts/test-needs.sh", debianAWS)
	}
	awsCommands.Do(func() { awsCommands.err = startAWSCommands() })
	must(t, awsCommands.err)
	return awsCommands.program
}

func startAWSCommands() error {
	a, dir := &awsCommands, filepath.Dir(musterBinary)
	a.address, a.program = filepath.Join(dir, "aws.socket"), filepath.Join(dir, "aws")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: a.address, Net: "unixpacket"})
	if err != nil {
		return err
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.Command("/usr/bin/python3", "awscommands.py") // the interpreter of debianAWS
	cmd.Env, cmd.Stderr, cmd.ExtraFiles = cleanEnvironment("LC_ALL=C.UTF-8"), os.Stderr, []*os.File{file}
	var input *os.File
	if input, a.input, err = os.Pipe(); err != nil {
		return err
	}
	defer input.Close()
	cmd.Stdin = input
	if err := cmd.Start(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.WriteFile(a.program, fmt.Appendf(nil, "#!/bin/sh\n%s=%s exec %s \"$@\"\n", awsVariable, a.address, self), 0o755)
}
