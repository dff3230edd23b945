package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs under test, as paths.
var (
	musterBinary       string
	arenaServerBinary  string
	arenaClientBinary  string
	bareServerBinary   string // the arena's server without a library
	backendBinary      string
	oidcProviderBinary string            // an identity provider
	sdkServerBinaries  map[string]string // by version of the server SDK
)

func TestMain(m *testing.M) {
	if profiles := os.Getenv(loadVariable); profiles != "" { // a test started this program again
		os.Exit(renewingLoad(strings.Split(profiles, ",")))
	}
	if address := os.Getenv(awsVariable); address != "" { // awsCLI is this
		os.Exit(passOn(address))
	}
	dir, err := os.MkdirTemp("", "muster-e2e-")
	if err == nil {
		err = build(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	bin := func(name string) string { return filepath.Join(dir, name) }
	musterBinary, arenaServerBinary, arenaClientBinary = bin("muster"), bin("arena-server"), bin("arena-client")
	bareServerBinary, backendBinary = bin("arena-server-bare"), bin("backend")
	oidcProviderBinary = bin("oidcprovider")
	sdkServerBinaries = map[string]string{"5.5.0": bin("sdkserver-5.5.0"), "5.4.0": bin("sdkserver-5.4.0")}
	if out, err := exec.Command("../scripts/release-build.sh", musterBinary).CombinedOutput(); err != nil {
		return fmt.Errorf("the build of a release: %w\n%s", err, out)
	}
	for _, args := range [][]string{
		{"build", "-o", dir + string(filepath.Separator), "../examples/arena/arena-server", "../examples/arena/arena-client",
			"../examples/arena/arena-server-bare", "../examples/backend"},
		{"build", "-C", "serversdk", "-o", sdkServerBinaries["5.5.0"], "."},
		{"build", "-C", "serversdk", "-modfile=v5.4.0.mod", "-o", sdkServerBinaries["5.4.0"], "."},
		{"build", "-C", "oidcprovider", "-o", oidcProviderBinary, "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off") // as shipped
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
	}
	return nil
}
