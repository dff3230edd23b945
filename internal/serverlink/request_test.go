package serverlink

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestReadRequest(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		want          request
	}{
		{"Go",
			`{"Action":"ActivateServerProcess","RequestId":"0c7c","SdkVersion":"5.6.0","SdkLanguage":"Go","SdkToolName":"","SdkToolVersion":"","Port":7777,"LogPaths":null}`,
			request{action: actActivateServerProcess, id: "0c7c", sdkVersion: "5.6.0", sdkLanguage: "Go", port: 7777}},
		{"C++ leaves unset members out",
			`{"Action":"ActivateServerProcess","LogPaths":["/log/a","C:\\log"],"Port":7777,"RequestId":"Ab","SdkLanguage":"Cpp","SdkVersion":"5.4.0"}`,
			request{action: actActivateServerProcess, id: "Ab", sdkVersion: "5.4.0", sdkLanguage: "Cpp", port: 7777, logPaths: []string{"/log/a", `C:\log`}}},
		{"C# writes null and the envelope last",
			`{"GameSessionId":null,"PlayerSessionId":"psess-1","PlayerId":null,"PlayerSessionStatusFilter":null,"NextToken":null,"Limit":50,"Action":"DescribePlayerSessions","RequestId":"1"}`,
			request{action: actDescribePlayerSessions, id: "1", playerSession: "psess-1", limit: 50}},
		{"names in any case, numbers with a fraction of nothing, unknown members",
			` { "ACTION" : "ActivateServerProcess" , "requestid":"1", "pORT":7777.0, "Future":{"a":[1,{"b":null}]}, "SDKVERSION":"5" } `,
			request{action: actActivateServerProcess, id: "1", port: 7777, sdkVersion: "5"}},
		{"escapes", `{"Action":"AcceptPlayerSession","Request\u0049d":"\u0041\ud83d\ude00\ud83d\n","PlayerSessionId":"` + "\xff" + `"}`,
			request{action: actAcceptPlayerSession, id: "A😀\ufffd\n", playerSession: "\ufffd"}},
		{"the last of repeated members counts", `{"Action":"x","Action":"HeartbeatServerProcess","RequestId":"1","HealthStatus":true,"HealthStatus":false,"HealthStatus":true}`,
			request{action: actHeartbeatServerProcess, id: "1", healthy: true}},
		{"unknown action", `{"Action":"Dance","RequestId":"1"}`, request{action: "Dance", id: "1"}},
		{"a wrong type is the first fault's", `{"Action":"ActivateServerProcess","RequestId":"1","Port":"7777","LogPaths":7}`,
			request{action: actActivateServerProcess, id: "1", fault: `Port is "7777", must be a whole number`}},
		{"a long id", `{"Action":"x","RequestId":"` + strings.Repeat("é", 129) + `"}`,
			request{action: "x", id: strings.Repeat("é", 129), fault: "RequestId has more than 128 characters"}},
	} {
		got, ok := readRequest([]byte(tc.message))
		tc.want.bytes = len(tc.message)
		if !ok || !reflect.DeepEqual(*got, tc.want) {
			t.Errorf("%s:\n got %+v %v\nwant %+v", tc.name, got, ok, tc.want)
		}
	}
}

func TestWhatCannotBeAnswered(t *testing.T) {
	for _, message := range []string{
		``, `null`, `"text"`, `[]`, `{`, `{}`, `{"Action":"x"}`, `{"Action":"x","RequestId":""}`, `{"Action":"x","RequestId":null}`,
		`{"Action":"x","RequestId":7}`, `{"Action":"x","RequestId":"1"`, `{"Action":"x","RequestId":"1"}{}`, `{"Action":"x","RequestId":"1",}`,
		`{'Action':'x'}`, "\x00\x01\x02", strings.Repeat(`{"a":`, 100000), `{"RequestId":"1","a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	} {
		if got, ok := readRequest([]byte(message)); ok {
			t.Errorf("%.80q was read as %+v", message, got)
		}
	}
}

// FuzzReadRequest compares the reader with the standard library: both accept the same requests with the same members.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"Action":"ActivateServerProcess","RequestId":"1","Port":7777.0,"LogPaths":["a",null,"\u00e9"],"x":[{"y":-1.5e3}]}`))
	f.Add([]byte(`{"action":"HeartbeatServerProcess","REQUESTID":"1","HealthStatus":true}`))
	f.Add([]byte(`{"RequestId":"\ud83d\ude00\ud83d\\u0041","Limit":1e1}`))
	f.Add([]byte(`{"RequestId":"1","GameSessionId":7}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		r, ok := readRequest(message)
		if !ok {
			return
		}
		var std struct {
			Action, RequestId, GameSessionId, NextToken string
			Port                                        json.Number
			HealthStatus                                bool
		}
		if !json.Valid(message) {
			t.Fatalf("%q was read, but is no JSON", message)
		}
		if err := json.Unmarshal(message, &std); err != nil || r.fault != "" {
			return // the standard library refuses the whole for one member; we do not
		}
		for name, pair := range map[string][2]string{
			"Action": {r.action, std.Action}, "RequestId": {r.id, std.RequestId},
			"GameSessionId": {r.gameSession, std.GameSessionId}, "NextToken": {r.nextToken, std.NextToken},
		} {
			if pair[0] != pair[1] && !nullMeansEmpty(message) {
				t.Fatalf("%s: got %q, the standard library %q, from %q", name, pair[0], pair[1], message)
			}
		}
		if back, ok := readRequest(appendOK(nil, r)); !ok || back.id != r.id || back.action != r.action {
			t.Fatalf("answer %s does not give back %q and %q", appendOK(nil, r), r.action, r.id)
		}
	})
}

// nullMeansEmpty: after a value, a repeated member that is null leaves the value in the standard library and empties it
// here.
func nullMeansEmpty(message []byte) bool { return strings.Contains(string(message), "null") }
