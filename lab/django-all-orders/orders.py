"""The back office's page of orders: a Django application in one file; "orders.py fill" makes its table."""
import sys

from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF="orders", SECRET_KEY="lab", USE_TZ=True, MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "NAME": "shop", "USER": "shop", "PASSWORD": "shop",
                           "HOST": "127.0.0.1", "PORT": 3306, "CONN_MAX_AGE": None}},
)

import django
django.setup()

from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import JsonResponse
from django.urls import path


class Order(models.Model):
    customer = models.CharField(max_length=80)
    placed = models.DateTimeField(auto_now_add=True)
    amount = models.DecimalField(max_digits=9, decimal_places=2)
    note = models.CharField(max_length=160)

    class Meta:
        app_label = "orders"
        db_table = "orders"


def orders(request):
    newest = Order.objects.order_by("-id"){{.slice}}
    return JsonResponse({"orders": list(newest.values())})


urlpatterns = [path("orders", orders)]

if sys.argv[1:] == ["fill"]:
    with connection.schema_editor() as editor:
        editor.create_model(Order)
    Order.objects.bulk_create([
        Order(customer=f"Customer {i % 700}", amount=i % 500, note="please ring twice " * 5) for i in range(3000)
    ], batch_size=500)
else:
    application = get_wsgi_application()
