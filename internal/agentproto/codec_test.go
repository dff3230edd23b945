package agentproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// golden calls check for each message in a directory of testdata. They are the messages on the wire: those without a suffix in their
// name as in docs/spec, the others with the fields that only `muster agent` has.
func golden(t *testing.T, dir string, check func(t *testing.T, action string, text []byte)) {
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no files")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			action, _, _ := strings.Cut(name, ".")
			check(t, action, bytes.TrimSpace(text))
		})
	}
}

func same(t *testing.T, got, want []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func TestGoldenRequests(t *testing.T) {
	golden(t, "request", func(t *testing.T, action string, text []byte) {
		for _, form := range [][]byte{text, otherCase(text)} {
			r, got, id, err := DecodeRequest(form)
			if err != nil || got != action || r.Action() != action {
				t.Fatalf("%q, %v", got, err)
			}
			again, err := EncodeRequest(id, r)
			same(t, again, text, err)
		}
	})
}

// otherCase changes the case of member names, and adds an unknown member.
func otherCase(text []byte) []byte {
	for _, name := range []string{"Action", "RequestId", "ProcessId", "ProcessList", "Exit", "LogPaths", "StatusCode", "Status"} {
		text = bytes.ReplaceAll(text, []byte(`"`+name+`":`), []byte(`"`+strings.ToLower(name)+`":`))
	}
	return append(text[:len(text)-1:len(text)-1], `,"Unknown":{"a":[1]}}`...)
}

func TestGoldenPushes(t *testing.T) {
	golden(t, "push", func(t *testing.T, action string, text []byte) {
		for _, form := range [][]byte{text, otherCase(text)} {
			m, err := DecodeReceived(form)
			if err != nil || m.Action != action || m.Push == nil || m.Push.Action() != action {
				t.Fatalf("%+v, %v", m, err)
			}
			again, err := EncodePush(m.Push)
			same(t, again, text, err)
		}
	})
}

func TestGoldenAnswers(t *testing.T) {
	fields := map[string]func() Answer{
		"SendHeartbeat":                func() Answer { return new(HeartbeatAnswer) },
		"DescribeRuntimeConfiguration": func() Answer { return new(RuntimeConfiguration) },
		"GetFleetRoleCredentials":      func() Answer { return new(RoleCredentials) },
		"AgentHello":                   func() Answer { return new(HelloAnswer) },
		"GetServerToken":               func() Answer { return new(ServerToken) },
		"RequestLogUpload":             func() Answer { return new(LogUpload) },
	}
	golden(t, "answer", func(t *testing.T, action string, text []byte) {
		m, err := DecodeReceived(text)
		if err != nil || m.Push != nil || m.RequestID != "r" {
			t.Fatalf("%+v, %v", m, err)
		}
		if m.StatusCode != 200 {
			again, err := EncodeFailure(m.Action, m.RequestID, m.StatusCode, m.ErrorMessage)
			same(t, again, text, err)
			return
		}
		made := fields[action]
		if made == nil {
			again, err := EncodeAnswer(m.Action, m.RequestID, nil)
			same(t, again, text, err)
			return
		}
		into := made()
		if err := m.Into(into); err != nil {
			t.Fatal(err)
		}
		again, err := EncodeAnswer(m.Action, m.RequestID, into)
		same(t, again, text, err)
	})
}

// An unset list is an empty list in a message, and an unset text of a request is null.
func TestUnset(t *testing.T) {
	for want, got := range map[string]func() ([]byte, error){
		`{"Action":"SendHeartbeat","RequestId":"r","Status":null,"ProcessList":[],"HeartbeatTimeMillis":0}`: func() ([]byte, error) {
			return EncodeRequest("r", &SendHeartbeat{})
		},
		`{"Action":"SendHeartbeat","RequestId":"r","StatusCode":200,"Status":"ACTIVE","UnhealthyProcesses":[],"UnregisteredProcesses":[]}`: func() ([]byte, error) {
			return EncodeAnswer("SendHeartbeat", "r", &HeartbeatAnswer{Status: OrderActive})
		},
		`{"Action":"SendOutput","RequestId":"r","StreamId":"s","Output":"a` + "\ufffd" + `"}`: func() ([]byte, error) {
			return EncodeRequest("r", &SendOutput{StreamID: "s", Output: "a\xff"})
		},
	} {
		text, err := got()
		same(t, text, []byte(want), err)
	}
	r, _, _, err := DecodeRequest([]byte(`{"Action":"SendHeartbeat","RequestId":"r","Status":"ACTIVE","ProcessList":null,"Metrics":null}`))
	if h, ok := r.(*SendHeartbeat); err != nil || !ok || len(h.ProcessList) != 0 || h.Status != Active {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("x", LastOutputMax+1)
	for text, want := range map[string]string{
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Sleeping"}`:                                                                                            `SendHeartbeat: Status is "Sleeping"; want Initializing, Activating, Active, Terminating, Interrupted or Terminated`,
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Active","ProcessList":"p"}`:                                                                            `SendHeartbeat: ProcessList is a string; want a list`,
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Active","ProcessList":["p",7]}`:                                                                        `SendHeartbeat: ProcessList.1 is a number; want a string`,
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Active","ProcessList":[""]}`:                                                                           `SendHeartbeat: ProcessList[0] is ""; want 1 to 1024 bytes`,
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Active","ProcessList":["` + strings.Repeat(`p","`, ProcessesMax) + `p"]}`:                              `SendHeartbeat: ProcessList is a list of 1001; want 0 to 1000 entries`,
		`{"Action":"SendHeartbeat","RequestId":"r","Status":"Active","Processes":[{"ProcessId":"p","Port":70000}]}`:                                                 `SendHeartbeat: Processes[0].Port is 70000; want 0 to 65535`,
		`{"Action":"NotifyServerProcessTermination","RequestId":"r","ProcessId":"p","TerminationReason":"BORED"}`:                                                   `NotifyServerProcessTermination: TerminationReason is "BORED"; want a termination reason, such as SERVER_PROCESS_CRASHED`,
		`{"Action":"NotifyServerProcessTermination","RequestId":"r","ProcessId":"p","TerminationReason":"NORMAL_TERMINATION","Exit":{"LastOutput":"` + long + `"}}`: `NotifyServerProcessTermination: Exit.LastOutput is "` + long[:60] + `"… (65537 bytes); want 0 to 65536 bytes`,
		`{"Action":"Dance","RequestId":"r"}`: `unknown action "Dance"`,
	} {
		_, _, id, err := DecodeRequest([]byte(text))
		if err == nil || err.Error() != want || id != "r" {
			t.Errorf("%.100s\n got %v, id %q\nwant %s", text, err, id, want)
		}
	}
	for _, garbage := range []string{"", "7", "[]", `{"Action":"SendHeartbeat"}`, `{"RequestId":7}`, `{`, `{}{}`,
		`{"RequestId":"r","a":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, `{"a":"` + strings.Repeat("x", MessageMax) + `"}`} {
		if _, _, _, err := DecodeRequest([]byte(garbage)); !errors.Is(err, ErrGarbage) {
			t.Errorf("%.100s: %v; want ErrGarbage", garbage, err)
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.json")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = DecodeReceived(text)
		r, _, id, err := DecodeRequest(text)
		if err != nil {
			return
		}
		again, err := EncodeRequest(id, r)
		if err != nil {
			t.Skip() // it has grown by escapes
		}
		if _, _, _, err := DecodeRequest(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// Text that is cut to the maximum length of a message still fits after it was encoded, whatever bytes it has.
func TestTextFits(t *testing.T) {
	fits := func(r Request) {
		t.Helper()
		line, err := EncodeRequest("1", r)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := DecodeRequest(line); err != nil {
			t.Error(err)
		}
	}
	for _, part := range []string{"x", "ü", "x\xff", "\xff"} {
		for _, begin := range []string{"", "y", "ü", "\xbc"} {
			text := Text(begin + strings.Repeat(part, TextBytes))
			output := LastOutput([]byte(begin + strings.Repeat(part, LastOutputMax) + "end"))
			fits(&SendHeartbeat{Status: Active, ProcessList: []string{}, Launches: []LaunchState{{LaunchPath: "server", State: LaunchFailed, Reason: text}}})
			fits(&NotifyServerProcessTermination{ProcessID: "p", EventCode: Crashed.EventCode(), TerminationReason: Crashed, Exit: &Exit{LastOutput: output}})
			if part != "\xff" && (len(text) < TextBytes-utf8.UTFMax || len(output) < LastOutputMax-utf8.UTFMax) || !strings.HasSuffix(output, "end") {
				t.Errorf("%q and many %q: %d bytes of the reason, %d of the output", begin, part, len(text), len(output))
			}
		}
	}
	if text, output := Text("exit code 1 – ü"), LastOutput([]byte("ü\n")); text != "exit code 1 – ü" || output != "ü\n" {
		t.Errorf("%q, %q", text, output)
	}
}

// The free space of a full disk is still reported as a number: muster hosts --json has it.
func TestFullDisk(t *testing.T) {
	text, err := json.Marshal(HostMetrics{DiskTotalBytes: 1 << 30})
	if err != nil || !strings.Contains(string(text), `"DiskFreeBytes":0`) {
		t.Errorf("%s, %v", text, err)
	}
}
