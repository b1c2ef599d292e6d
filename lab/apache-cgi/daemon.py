"""The booking form as a service."""
import booking
import web

web.serve(8001, lambda: booking.page().encode())
