//go:build !linux

package doctor

import "time"

func volatileDisk(string) (kind string, lost bool) { return "", false }

func diskSpace(string) (free, total uint64, ok bool) { return 0, 0, false }

func clockState() (synchronized bool, errorMax time.Duration, ok bool) { return false, 0, false }

func listener(string) string { return "" }
