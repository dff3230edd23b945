package serverlink

import (
	"encoding/json"
	"strings"
	"testing"
)

// The frames are the protocol: a changed byte here is a game server that stops working somewhere.
func TestFrames(t *testing.T) {
	accept := &request{action: actAcceptPlayerSession, id: "9f0e"}
	describe := &request{action: actDescribePlayerSessions, id: "9f0f"}
	for _, tc := range []struct{ name, got, want string }{
		{"answer", string(appendOK(nil, accept)), `{"Action":"AcceptPlayerSession","RequestId":"9f0e","StatusCode":200}`},
		{"failure", string(appendFailure(nil, accept, 400, `PlayerSession (psess-1) has a status of ACTIVE instead of RESERVED`)),
			`{"Action":"AcceptPlayerSession","RequestId":"9f0e","StatusCode":400,"ErrorMessage":"PlayerSession (psess-1) has a status of ACTIVE instead of RESERVED"}`},
		{"strange request", string(appendFailure(nil, &request{action: "a\"\\\x01\n", id: "é\xff"}, 400, "")),
			`{"Action":"a\"\\\u0001\n","RequestId":"é` + "\ufffd" + `","StatusCode":400,"ErrorMessage":""}`},
		{"player sessions", string(appendPlayerSessions(nil, describe, []playerSession{
			{player: "ann", id: "psess-1", gameSession: "arn:g", fleet: "fleet-1", data: "d", ipAddress: "127.0.0.1", dnsName: "h", port: 7777, created: 1700000000123, status: "ACTIVE"},
			{player: "bob", id: "psess-2", gameSession: "arn:g", fleet: "fleet-1", created: 1, ended: 2, status: "COMPLETED"},
		}, "t1")),
			`{"Action":"DescribePlayerSessions","RequestId":"9f0f","StatusCode":200,"NextToken":"t1","PlayerSessions":[` +
				`{"PlayerId":"ann","PlayerSessionId":"psess-1","GameSessionId":"arn:g","FleetId":"fleet-1","PlayerData":"d","IpAddress":"127.0.0.1","DnsName":"h","Port":7777,"CreationTime":1700000000123,"Status":"ACTIVE"},` +
				`{"PlayerId":"bob","PlayerSessionId":"psess-2","GameSessionId":"arn:g","FleetId":"fleet-1","PlayerData":"","IpAddress":"","DnsName":"","Port":0,"CreationTime":1,"TerminationTime":2,"Status":"COMPLETED"}]}`},
		{"no player sessions", string(appendPlayerSessions(nil, describe, nil, "")),
			`{"Action":"DescribePlayerSessions","RequestId":"9f0f","StatusCode":200,"NextToken":"","PlayerSessions":[]}`},
		{"certificate", string(appendCertificate(nil, &request{action: actGetComputeCertificate, id: "1"}, "", "DesktopPC")),
			`{"Action":"GetComputeCertificate","RequestId":"1","StatusCode":200,"CertificatePath":"","ComputeName":"DesktopPC"}`},
		{"no credentials", string(appendNoCredentials(nil, &request{action: actGetFleetRoleCredentials, id: "1"})),
			`{"Action":"GetFleetRoleCredentials","RequestId":"1","StatusCode":200,"AssumedRoleUserArn":"","AssumedRoleId":"","AccessKeyId":"","SecretAccessKey":"","SessionToken":"","Expiration":0}`},
		{"create", string(appendCreateGameSession(nil, &createGameSession{id: "arn:g", name: "Debug", playersMax: 4, ipAddress: "127.0.0.1", port: 7777,
			data: "x", properties: []property{{"map", "a"}, {"mode", "\t"}}})),
			`{"Action":"CreateGameSession","GameSessionId":"arn:g","GameSessionName":"Debug","MaximumPlayerSessionCount":4,"IpAddress":"127.0.0.1","DnsName":"","Port":7777,"GameSessionData":"x","MatchmakerData":"","GameProperties":{"map":"a","mode":"\t"}}`},
		{"create without properties", string(appendCreateGameSession(nil, &createGameSession{})),
			`{"Action":"CreateGameSession","GameSessionId":"","GameSessionName":"","MaximumPlayerSessionCount":0,"IpAddress":"","DnsName":"","Port":0,"GameSessionData":"","MatchmakerData":"","GameProperties":{}}`},
		{"terminate", string(appendTerminateProcess(nil, 1700000300000)), `{"Action":"TerminateProcess","TerminationTime":1700000300000}`},
		{"refresh", string(appendRefreshConnection(nil, "wss://h/", "a-b")), `{"Action":"RefreshConnection","RefreshConnectionEndpoint":"wss://h/","AuthToken":"a-b"}`},
	} {
		if tc.got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, tc.got, tc.want)
		}
		if !json.Valid([]byte(tc.got)) {
			t.Errorf("%s is no JSON: %s", tc.name, tc.got)
		}
	}
}

func TestPushesHaveNoRequestID(t *testing.T) {
	for _, push := range [][]byte{
		appendCreateGameSession(nil, &createGameSession{}), appendTerminateProcess(nil, 1), appendRefreshConnection(nil, "", ""),
	} {
		for _, never := range []string{"RequestId", "StatusCode"} {
			if strings.Contains(string(push), never) {
				t.Errorf("%s contains %s", push, never)
			}
		}
	}
}

func BenchmarkAcceptRoundTrip(b *testing.B) {
	message := []byte(`{"Action":"AcceptPlayerSession","RequestId":"3a3e9c0e-8d51-4c0c-9a55-3ddc34a4f6a1","GameSessionId":"arn:aws:gamelift:us-east-1::gamesession/fleet-2222bbbb-33cc-44dd-55ee-6666ffff77aa/custom-home/gsess-1111aaaa-22bb-33cc-44dd-5555eeee66ff","PlayerSessionId":"psess-3333cccc-44dd-55ee-66ff-7777aaaa88bb"}`)
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		r, ok := readRequest(message)
		if !ok {
			b.Fatal("not read")
		}
		out = appendOK(out[:0], r)
		r.free()
	}
}
