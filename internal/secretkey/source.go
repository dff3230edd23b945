package secretkey

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/fileowner"
)

// Bounds of a command that prints a key.
const (
	commandPatience = 30 * time.Second
	commandGrace    = time.Second // after its end, for its child processes that still hold its output open
	complaintMax    = 2048        // bytes of its error output
)

// fromEnvironment reads the key from an environment variable.
func fromEnvironment(name string) (*Key, error) {
	if name == "" || strings.ContainsAny(name, "= ") {
		return nil, fmt.Errorf("env:%s: want the name of an environment variable, such as env:MUSTER_SECRET_KEY", excerpt.Short(name))
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return nil, fmt.Errorf("the environment variable %s is not set", name)
	}
	return parse("the environment variable "+name, []byte(value))
}

// fromCommand reads the key that a program prints, for example a client of a key management service. The program runs without a shell, so no word has a special meaning.
func fromCommand(line, dataDir string) (*Key, error) {
	words := strings.Fields(line)
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, fmt.Errorf("command:%s: want the absolute path of a program, followed by its arguments, separated by spaces", excerpt.Short(line))
	}
	program := words[0]
	if err := checkProgram(program, dataDir); err != nil {
		return nil, err
	}
	return run(program, words[1:], commandPatience)
}

func checkProgram(path, dataDir string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a program", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s has mode %#o: other users of this machine can replace the program that gives the key; want chmod go-w %[1]s", path, info.Mode().Perm())
	}
	if err := fileowner.Check(path, info); err != nil {
		return err
	}
	return checkOutside(path, dataDir)
}

// run returns the key that a program prints. No error contains any of its standard output. The last line of its standard error, which is for people, is part of the error.
func run(program string, arguments []string, patience time.Duration) (*Key, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, arguments...) // which kills the program when ctx ends
	out, complaint := bounded{most: fileMax + 1}, bounded{most: complaintMax}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, commandGrace
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not print the key within %s", program, patience)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w: %s", program, err, lastLine(complaint.Bytes()))
	}
	return parse("the output of "+program, out.Bytes())
}

// bounded keeps the beginning of the output, and accepts and drops the rest, so that the program can end normally.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), b.most-b.Len())]) // never fails
	return len(p), nil
}

func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return excerpt.Short(string(text[bytes.LastIndexByte(text, '\n')+1:]))
}

// parse parses the text of a key. where names its origin in errors, which contain no part of the text.
func parse(where string, content []byte) (*Key, error) {
	text := bytes.TrimSpace(content)
	var secret [keySize]byte
	if len(text) != 2*keySize {
		return nil, fmt.Errorf("%s has %d characters; want a key of %d hexadecimal digits, as `muster secret-key create` writes it", where, min(len(text), fileMax), 2*keySize)
	}
	if _, err := hex.Decode(secret[:], text); err != nil {
		return nil, fmt.Errorf("%s has other characters than hexadecimal digits; want a key of %d digits, as `muster secret-key create` writes it", where, 2*keySize)
	}
	return newKey(where, secret), nil
}
