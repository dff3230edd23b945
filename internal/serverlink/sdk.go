package serverlink

import "strings"

// cannotReconnect reports whether an SDK never opens a second connection by itself after it has lost one. Sources: Go 5.0.0 and
// C# 5.1.1 were measured; C# 5.0 has the code of 5.1. SDK protocol, 2.7.
func cannotReconnect(language, version string) bool {
	switch release(version) {
	case "5.0":
		return language == "Go" || language == "CSharp"
	case "5.1":
		return language == "CSharp"
	}
	return false
}

// release is the major and minor number of a version.
func release(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// warnOfSDK warns once, for each release, of game servers that do not come back after an outage.
func (s *Server) warnOfSDK(h *hello) {
	if !cannotReconnect(h.sdkLanguage, h.sdkVersion) {
		return
	}
	if _, warned := s.warned.LoadOrStore(h.sdkLanguage+" "+release(h.sdkVersion), true); !warned {
		s.log.Warn("a game server's SDK cannot reconnect: its game session ends when the connection is lost, also when this service restarts; use a newer SDK",
			"sdk", cut(h.sdkLanguage, sdkText)+" "+cut(h.sdkVersion, sdkText), "process", h.key)
	}
}
