package serverlink

import "github.com/musterhq/muster/internal/domain/fleet"

// warnOfSDK warns once per SDK release about game servers that do not reconnect after an outage.
func (s *Server) warnOfSDK(h *hello) {
	if !fleet.CannotReconnect(h.sdk()) {
		return
	}
	if _, warned := s.warned.LoadOrStore(h.sdkLanguage+" "+fleet.SDKRelease(h.sdkVersion), true); !warned {
		s.log.Warn("a game server's SDK cannot reconnect: its game session ends when the connection is lost, also when this service restarts; use a newer SDK",
			"sdk", h.sdk(), "process", h.key)
	}
}

// sdk returns the SDK's name and version as it reports them, such as "Go 5.5.0".
func (h *hello) sdk() string { return cut(h.sdkLanguage, sdkText) + " " + cut(h.sdkVersion, sdkText) }
