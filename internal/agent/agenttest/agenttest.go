// Package agenttest has misbehaving server processes for the agent's tests. A test binary plays them itself: it calls Main before its tests, and acts
// as such a program when it is started with Args.
package agenttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const word = "play-server-process"

// Args returns the arguments with which the test binary plays a process:
//
//	exit CODE       ends at once
//	crash           ends by a signal
//	wait            ends when it gets SIGTERM, or Ctrl-Break on Windows
//	stubborn        ignores SIGTERM
//	leave FILE      starts a stubborn process in a session of its own, writes its number to FILE and waits
//	leave-and-exit FILE   the same, and then exits with 0
//	flood           writes without end
//	eat BYTES       takes memory, prints "ate" and waits
//	listen PORT     listens on a port, prints "listening" and waits
//	access WRITE READ   tries to write and to read the files that these environment variables name, and to write to MUSTER_LOG_DIR, prints the errors and waits
//	print NAME...   prints environment variables and waits
//
// All of them print "ready" first.
func Args(play ...string) []string { return append([]string{word}, play...) }

// Parameters is Args in one line, for a runtime configuration.
func Parameters(play ...string) string { return strings.Join(Args(play...), " ") }

// Main plays a process if the binary was started as one. It does not return in that case.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != word {
		return
	}
	if len(os.Args) == 2 {
		check(fmt.Errorf("%s: want what to play", word)) // otherwise it would run all tests
	}
	rest := os.Args[3:]
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, os.Interrupt, syscall.SIGTERM)
	fmt.Println("ready")
	switch os.Args[2] {
	case "exit":
		code, err := strconv.Atoi(rest[0])
		check(err)
		os.Exit(code)
	case "crash":
		check(crash())
	case "wait":
	case "stubborn":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		select {} // TestMain's process has no other goroutine that could deadlock: the runtime waits for signals
	case "leave", "leave-and-exit":
		leave(rest[0])
		if os.Args[2] == "leave-and-exit" {
			os.Exit(0)
		}
	case "flood":
		line := []byte(strings.Repeat("flood ", 200) + "\n")
		for {
			os.Stdout.Write(line)
		}
	case "eat":
		n, err := strconv.Atoi(rest[0])
		check(err)
		eaten := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			eaten[i] = 1
		}
		fmt.Println("ate", len(eaten))
	case "listen":
		l, err := net.Listen("tcp", ":"+rest[0])
		check(err)
		defer l.Close()
		fmt.Println("listening")
	case "access":
		write, err := os.OpenFile(os.Getenv(rest[0]), os.O_WRONLY, 0)
		fmt.Println("write:", err)
		write.Close()
		_, err = os.ReadFile(os.Getenv(rest[1]))
		fmt.Println("read:", err)
		fmt.Println("own directory:", os.WriteFile(os.Getenv("MUSTER_LOG_DIR")+"/x", nil, 0o600))
	case "print":
		for _, name := range rest {
			fmt.Printf("%s=%s\n", name, os.Getenv(name))
		}
	default:
		panic(os.Args[2])
	}
	<-terminated
	fmt.Println("terminated")
	os.Exit(0)
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(70)
	}
}

// leave starts a process outside of this process's group and session, and writes its process id to a file.
func leave(file string) {
	self, err := os.Executable()
	check(err)
	away := exec.Command(self, Args("stubborn")...)
	away.SysProcAttr = ownSession()
	out, err := away.StdoutPipe()
	check(err)
	check(away.Start())
	ready := make([]byte, 6)
	_, err = out.Read(ready)
	check(err)
	check(os.WriteFile(file+".part", strconv.AppendInt(nil, int64(away.Process.Pid), 10), 0o600))
	check(os.Rename(file+".part", file))
}

// Patience is how long tests wait for what must happen: far longer than it takes, because machines of CI are slow.
const Patience = time.Minute
