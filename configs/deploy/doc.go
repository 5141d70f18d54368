// Package deploy holds what a router is run with: an image, a systemd unit,
// manifests for Kubernetes, pages for operators, and guides for those who come
// from other routers. It has no code; its tests hold all of that to what the
// configuration takes, and to each other.
package deploy
