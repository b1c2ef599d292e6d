package main

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

func TestIsStranger(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("2600::1")}
	for text, want := range map[string]bool{
		"127.0.0.1": false, "127.200.3.4": false, "::1": false, "0.0.0.0": false, "::ffff:127.0.0.1": false,
		"10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.9.9": false, "fd00::1": false,
		"169.254.1.1": false, "fe80::1%eth0": false, "100.64.0.1": false, "100.127.255.255": false, "198.19.0.1": false, "192.0.2.7": false, "2001:db8::1": false,
		"9.9.9.9": false, "::ffff:9.9.9.9": false, "2600::1": false,
		"9.9.9.10": true, "172.32.0.1": true, "11.0.0.1": true, "100.128.0.1": true, "::ffff:8.8.8.8": true, "2600::2": true,
	} {
		if got := isStranger(netip.MustParseAddr(text), own); got != want {
			t.Errorf("%s: stranger %v, want %v", text, got, want)
		}
	}
}

// Addresses are not looked up, so nothing is sent to anybody.
func TestAStrangerIsNotLoadedUnasked(t *testing.T) {
	for _, url := range []string{"http://8.8.8.8/", "http://[2600::3]:81/"} {
		err := spareStrangers(context.Background(), model.LoadPlan{URL: url})
		if err == nil || codeOf(err) != exitUsage || !strings.Contains(err.Error(), "--yes-i-may") {
			t.Errorf("%s: %v, exit code %d; want %d and what to do", url, err, codeOf(err), exitUsage)
		}
	}
	for _, url := range []string{"http://127.0.0.1/", "http://10.0.0.9/", "https://[::1]/"} {
		if err := spareStrangers(context.Background(), model.LoadPlan{URL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
